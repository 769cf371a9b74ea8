// SPDX-License-Identifier: Apache-2.0

package proxy

import "time"

// flapper lets a Fault come and go, until it is stopped.
type flapper struct {
	quit chan struct{}
	done chan error
}

func startFlapper(p *Proxy, f Fault) *flapper {
	fl := &flapper{quit: make(chan struct{}), done: make(chan error, 1)}
	go func() { fl.done <- fl.run(p, &f) }()
	return fl
}

func (fl *flapper) run(p *Proxy, f *Fault) error {
	for {
		if !fl.wait(f.Flap.Up) {
			return nil
		}
		if err := p.apply(f); err != nil {
			return err
		}
		if !fl.wait(f.Flap.Down) {
			return nil
		}
		if err := p.apply(&Fault{}); err != nil {
			return err
		}
	}
}

func (fl *flapper) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-fl.quit:
		return false
	}
}

// stop returns once the flapping is over, with what went wrong in it.
func (fl *flapper) stop() error {
	close(fl.quit)
	return <-fl.done
}
