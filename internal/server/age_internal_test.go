// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"time"
)

// connOpened is a connection of so many seconds ago.
func connOpened(at time.Time, age time.Duration, chance float64) *conn {
	c := &conn{listener: &listener{cfg: Config{ConnectionAge: age}.withDefaults()}, opened: at, chance: chance}
	if age > 0 {
		c.expires = at.Add(lifetime(age, chance))
	}
	return c
}

// A connection that is older than a replica expires within a minute of it, earlier ones
// sooner than others, and never later than by its age. A younger one is left alone.
func TestJoined(t *testing.T) {
	opened := time.Unix(1_000_000, 0)
	for name, c := range map[string]struct {
		age          time.Duration
		chance       float64
		joined, want time.Duration // after it was opened
	}{
		"in the middle":         {5 * time.Minute, 0.5, time.Minute, 90 * time.Second},
		"the last":              {5 * time.Minute, 0.999, time.Minute, time.Minute + 59940*time.Millisecond},
		"it is old anyway":      {5 * time.Minute, 0.5, 290 * time.Second, 5 * time.Minute},
		"without an age":        {0, 0.25, time.Hour, time.Hour + 15*time.Second},
		"ages below the window": {10 * time.Second, 0.5, 5 * time.Second, 10 * time.Second},
		"at the same time":      {5 * time.Minute, 0.5, 0, 5 * time.Minute},
		"before":                {5 * time.Minute, 0.5, -time.Second, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			conn := connOpened(opened, c.age, c.chance)
			conn.joined(opened.Add(c.joined))
			if got := conn.expires.Sub(opened); got != c.want {
				t.Errorf("it expires after %v, want %v", got, c.want)
			}
		})
	}
}

// Where replicas come and go all the time, a connection is closed as soon after the first
// as if that were the only one, and no sooner.
func TestJoinedAgainAndAgain(t *testing.T) {
	opened := time.Unix(1_000_000, 0)
	c := connOpened(opened, 5*time.Minute, 0.5)
	for s := range 40 {
		c.joined(opened.Add(time.Second + time.Duration(s)*time.Second))
	}
	if got := c.expires.Sub(opened); got != 31*time.Second {
		t.Errorf("it expires after %v", got)
	}
}
