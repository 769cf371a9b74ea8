// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"time"
)

// Notice is one thing that somebody should look at.
type Notice struct {
	// Critical: something that should be decided or served is not.
	Critical bool
	Text     string
}

const (
	expiresSoon = 30 * 24 * time.Hour
	lately      = 10 * time.Minute
)

// Notices returns what needs attention, the critical first. Nothing: all is well.
func (s *Status) Notices() []Notice {
	var critical, worth []Notice
	severe := func(format string, args ...any) {
		critical = append(critical, Notice{Critical: true, Text: fmt.Sprintf(format, args...)})
	}
	say := func(format string, args ...any) { worth = append(worth, Notice{Text: fmt.Sprintf(format, args...)}) }

	for _, why := range s.Unready {
		severe("Not ready: %s", why)
	}
	if n := len(s.Problems); n > 0 && s.Snapshot != nil {
		severe("The last change of the configuration is refused (%s); snapshot %s stays", Count(n, "problem"), s.Snapshot.Short)
	}
	if s.Mirror != nil {
		mirrorNotices(s.Mirror, s.Now, severe, say)
	}
	for i := range s.Targets {
		s.Targets[i].notices(severe, say)
	}
	for _, c := range s.Certificates {
		c.notices(s.Now, severe, say)
	}
	if n := s.since(s.FailOpens); n > 0 {
		severe("%s failed open in the last ten minutes", atLeast(n, "admission"))
	}
	if n := s.since(s.Sheds); n > 0 {
		severe("%s shed in the last ten minutes", atLeast(n, "admission"))
	}
	for _, p := range s.Pending {
		say("Webhook %s is pending: %s", p.Webhook, p.Reason)
	}
	for _, c := range s.Clusters {
		if c.Namespaces != nil && c.Namespaces.Stale {
			say("The namespaces of cluster %s are stale", c.Name)
		}
		for i := range c.Objects {
			c.Objects[i].notices(c.Name, say)
		}
		if last := c.Counts.LastOutdated; !last.IsZero() && s.Now.Sub(last) < lately {
			say("Cluster %s applies an older registration", c.Name)
		}
		if c.Namespaces != nil && c.Namespaces.Credential != "" {
			say("The credential for the API of cluster %s cannot be renewed: %s", c.Name, c.Namespaces.Credential)
		}
	}
	for _, d := range s.Draining {
		say("%s is draining: not yet safe to stop", d.URL)
	}
	return append(critical, worth...)
}

// notices says what is not known of a cluster's objects.
func (o *Objects) notices(cluster string, say sayer) {
	switch {
	case o.Stale:
		say("The %s of cluster %s are stale", o.Resource, cluster)
	case o.Unkept > 0 || o.Partial:
		say("Cluster %s has more %s than are kept: each of the others is asked for", cluster, o.Resource)
	}
}

type sayer func(format string, args ...any)

// notices says what is wrong with a Target: nobody is there, or not everybody.
func (t *Target) notices(severe, say sayer) {
	if t.Unresolved != "" {
		severe("%s has no endpoint: %s", t.URL, t.Unresolved)
		return
	}
	spared := 0
	for i := range t.Endpoints {
		if !t.Endpoints[i].Healthy() {
			spared++
		}
	}
	switch spared {
	case 0:
	case len(t.Endpoints):
		severe("%s: no endpoint of %d is healthy", t.URL, spared)
	default:
		say("%s: %d of %d endpoints are spared", t.URL, spared, len(t.Endpoints))
	}
	for i := range t.Endpoints {
		if e := &t.Endpoints[i]; e.OpenCount > 0 {
			say("%s at %s is not called for %s", t.URL, e.Address, e.OpenFor())
		}
	}
}

func (c *Certificate) notices(now time.Time, severe, say sayer) {
	switch {
	case now.After(c.NotAfter):
		severe("The certificate %s (%s) has expired", c.Subject, c.Role)
	case now.Add(expiresSoon).After(c.NotAfter):
		say("The certificate %s (%s) expires at %s", c.Subject, c.Role, c.NotAfter.UTC().Format(time.RFC3339))
	}
	if c.Refused != "" {
		severe("The files of %s are refused: %s", c.Role, c.Refused)
	}
}

// since returns how many of the decisions are recent.
func (s *Status) since(list []Decision) int {
	n := 0
	for i := range list {
		if s.Now.Sub(list[i].Time) < lately {
			n++
		}
	}
	return n
}

// atLeast says a number that cannot be above what is kept.
func atLeast(n int, what string) string {
	if n >= keptDecisions {
		return "at least " + Count(n, what)
	}
	return Count(n, what)
}

// Count says how many there are of what, which takes an s.
func Count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
