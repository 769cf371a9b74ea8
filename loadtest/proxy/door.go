// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"time"
)

type doorState uint8

const (
	doorRefusing doorState = iota
	doorOpen
	doorBlackHole
)

// door is a port on loopback that can be listened on or not. A second socket
// keeps the port while nobody listens: nobody else is given it meanwhile, and
// connection requests are refused all the same.
type door struct {
	address string
	accept  func(*net.TCPConn)
	keeper  io.Closer

	state doorState
	stop  func() // undoes the state
}

func newDoor(accept func(*net.TCPConn)) (*door, error) {
	keeper, address, err := reserve()
	if err != nil {
		return nil, err
	}
	return &door{address: address, accept: accept, keeper: keeper, stop: func() {}}, nil
}

// turn brings the door into a state. Where it fails the door refuses.
func (d *door) turn(to doorState) error {
	if to == d.state {
		return nil
	}
	d.stop()
	d.state, d.stop = doorRefusing, func() {}
	var stop func()
	var err error
	switch to {
	case doorOpen:
		stop, err = d.open()
	case doorBlackHole:
		stop, err = dig(d.address)
	case doorRefusing:
		return nil
	}
	if err == nil {
		d.state, d.stop = to, stop
	}
	return err
}

// open listens until stop is called.
func (d *door) open() (stop func(), err error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp4", d.address)
	if err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.listen(l)
	}()
	return func() {
		l.Close()
		<-done
	}, nil
}

func (d *door) listen(l net.Listener) {
	for {
		c, err := l.Accept()
		switch {
		case err == nil:
			d.accept(c.(*net.TCPConn))
		case errors.Is(err, net.ErrClosed):
			return
		default: // out of descriptors: some will be back
			time.Sleep(time.Millisecond)
		}
	}
}

func (d *door) close() {
	d.stop()
	d.keeper.Close()
}
