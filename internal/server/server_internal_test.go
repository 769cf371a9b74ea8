// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"time"
)

// What is not configured is as the fields of Config say, and what is stays.
func TestDefaults(t *testing.T) {
	for _, tt := range []struct{ given, want Config }{
		{Config{}, Config{
			BodyLimit: 37748736, BodyBytes: 536870912, Connections: 4096, HeaderTimeout: 5 * time.Second, BodyTimeout: 5 * time.Second,
			WriteTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, DefaultTimeout: 10 * time.Second, MaxTimeout: 30 * time.Second,
		}},
		{
			Config{BodyLimit: 1, BodyBytes: 2, Connections: 3, HeaderTimeout: 4, BodyTimeout: 5, WriteTimeout: 6, IdleTimeout: 7, DefaultTimeout: 8, MaxTimeout: 9},
			Config{BodyLimit: 1, BodyBytes: 2, Connections: 3, HeaderTimeout: 4, BodyTimeout: 5, WriteTimeout: 6, IdleTimeout: 7, DefaultTimeout: 8, MaxTimeout: 9},
		},
	} {
		got := tt.given.withDefaults()
		if got.Authorities == nil || got.Authorities() != nil || got.Observer == nil {
			t.Errorf("%+v", got)
		}
		got.Authorities, got.Observer = nil, nil
		for name, field := range map[string][2]any{
			"BodyLimit": {got.BodyLimit, tt.want.BodyLimit}, "BodyBytes": {got.BodyBytes, tt.want.BodyBytes}, "Connections": {got.Connections, tt.want.Connections},
			"HeaderTimeout": {got.HeaderTimeout, tt.want.HeaderTimeout}, "BodyTimeout": {got.BodyTimeout, tt.want.BodyTimeout}, "WriteTimeout": {got.WriteTimeout, tt.want.WriteTimeout},
			"IdleTimeout": {got.IdleTimeout, tt.want.IdleTimeout}, "DefaultTimeout": {got.DefaultTimeout, tt.want.DefaultTimeout}, "MaxTimeout": {got.MaxTimeout, tt.want.MaxTimeout},
		} {
			if field[0] != field[1] {
				t.Errorf("%s is %v, want %v", name, field[0], field[1])
			}
		}
	}
}

// fasthttp has a limit of connections of its own, which it must never come to.
func TestConcurrencyIsTheListeners(t *testing.T) {
	for _, connections := range []int{1, 600, 4096, 1 << 20} {
		if got := New(Config{Connections: connections}).http.Concurrency; got <= connections {
			t.Errorf("%d at a time, %d are let in", got, connections)
		}
	}
}
