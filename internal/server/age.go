// SPDX-License-Identifier: Apache-2.0

package server

import "time"

// lifetime returns age plus or minus up to a half, as random in [0, 1) says:
// what was opened together, after a restart of this process or of a caller, is
// not closed together.
func lifetime(age time.Duration, random float64) time.Duration {
	return age/2 + time.Duration(random*float64(age))
}

// joined notes when replicas joined last: a connection that is older expires within
// Config.JoinWindow, or the age of connections if that is less. Its chance stays the same, so
// that it is closed as soon where replicas come and go all the time.
func (c *conn) joined(at time.Time) {
	if !at.After(c.opened) {
		return
	}
	within := c.listener.cfg.JoinWindow
	if age := c.listener.cfg.ConnectionAge; age > 0 {
		within = min(within, age)
	}
	if end := at.Add(time.Duration(c.chance * float64(within))); c.expires.IsZero() || end.Before(c.expires) {
		c.expires = end
	}
}

// isAged reports whether the connection was old enough, when the current request came, to
// be closed with its answer.
func (c *conn) isAged() bool { return !c.expires.IsZero() && !c.arrived.Before(c.expires) }
