// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"
)

// Await returns what found finds in the first line of the log in which it finds
// something, behind those that were awaited before.
func (p *Process) Await(found func(line string) string) (string, error) {
	for late, ended := time.After(patience), false; ; {
		for line := range p.unseen {
			if got := found(line); got != "" {
				return got, nil
			}
		}
		if ended {
			return "", fmt.Errorf("%s has ended:\n%s", p.name(), p.Tail())
		}
		select {
		case <-p.news:
		case <-p.exited:
			ended = true // and may have said it last
		case <-late:
			return "", fmt.Errorf("%s does not say what is awaited:\n%s", p.name(), p.Tail())
		}
	}
}

// Serving waits until a dispatcher says at which addresses it serves.
func (p *Process) Serving() (listen, admin string, err error) {
	_, err = p.Await(func(line string) string {
		var record struct{ Msg, Listen, Admin string }
		_ = json.Unmarshal([]byte(line), &record) // a line of another kind has none of these
		if record.Msg != "serving" {
			return ""
		}
		listen, admin = record.Listen, record.Admin
		return listen
	})
	return listen, admin, err
}

// Until polls ready until it reports true, which is what says.
func (p *Process) Until(what string, ready func() bool) error {
	late, tick := time.After(patience), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for !ready() {
		select {
		case <-tick.C:
		case <-p.exited:
			return fmt.Errorf("%s has ended:\n%s", p.name(), p.Tail())
		case <-late:
			return fmt.Errorf("%s: %s does not become true:\n%s", p.name(), what, p.Tail())
		}
	}
	return nil
}

// Forget has Await ignore what was logged before.
func (p *Process) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = p.log.Len()
}

func (p *Process) name() string { return filepath.Base(p.cmd.Path) }

// unseen yields the whole lines that it has not yielded before, without their ends.
func (p *Process) unseen(yield func(string) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		line, _, whole := bytes.Cut(p.log.Bytes()[p.seen:], []byte("\n"))
		if !whole {
			return
		}
		p.seen += len(line) + 1
		if !yield(string(line)) {
			return
		}
	}
}
