// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"
	"time"
)

// Notice is one thing that somebody should look at, with what that takes. What has one
// cause is one Notice, however many webhooks or clusters it concerns. Texts are for
// people; the page, the command and the JSON show the same.
type Notice struct {
	Severity string `json:"severity"` // critical: something that should be decided or served is not; or warning
	Text     string `json:"text"`     // what is wrong
	// Affects says what becomes of admissions meanwhile.
	Affects string `json:"affects,omitempty"`
	// Error is the last error of the first that it concerns.
	Error   string `json:"error,omitempty"`
	Remedy  string `json:"remedy,omitempty"`
	Runbook string `json:"runbook,omitempty"` // URL
	// Webhooks, as configuration/name, and Clusters are those that it concerns; none: the
	// process as a whole.
	Webhooks []string `json:"webhooks"`
	Clusters []string `json:"clusters"`
}

// The severities.
const (
	critical = "critical"
	warning  = "warning"
)

// Critical reports whether something that should be decided or served is not.
func (n *Notice) Critical() bool { return n.Severity == critical }

// Lines are the Notice in full, from what is wrong to where that is documented.
func (n *Notice) Lines() []string {
	lines := []string{n.Text}
	for _, more := range []struct{ title, text string }{{"", n.Affects}, {"last error: ", n.Error}, {"", n.Remedy}, {"see ", n.Runbook}} {
		if more.text != "" {
			lines = append(lines, more.title+more.text)
		}
	}
	return lines
}

const (
	expiresSoon = 30 * 24 * time.Hour
	lately      = 10 * time.Minute
)

// runbook is the URL of what the alert of that name links to.
func runbook(alert string) string {
	return "https://github.com/admission-dispatcher/dispatcher/blob/main/docs/runbooks/" + alert + ".md"
}

// notices are found in the order in which they are listed: the critical first.
type notices struct{ critical, warnings []Notice }

func (l *notices) add(n Notice) {
	n.Webhooks, n.Clusters = orEmpty(n.Webhooks), orEmpty(n.Clusters)
	if n.Critical() {
		l.critical = append(l.critical, n)
		return
	}
	l.warnings = append(l.warnings, n)
}

func (l *notices) all() []Notice { return append(append([]Notice{}, l.critical...), l.warnings...) }

// FindNotices returns what needs attention, the critical first. Nothing: all is well.
func (s *Status) FindNotices() []Notice {
	var l notices
	s.processNotices(&l)
	if s.Mirror != nil {
		mirrorNotices(s.Mirror, s.Now, &l)
	}
	for _, o := range s.outages() {
		l.add(o.notice())
	}
	for i := range s.Certificates {
		s.Certificates[i].notices(s.Now, &l)
	}
	s.decisionNotices(&l)
	s.pendingNotices(&l)
	s.clusterNotices(&l)
	for _, d := range s.Draining {
		l.add(Notice{Severity: warning, Text: fmt.Sprintf("%s is draining: not yet safe to stop", d.URL), Affects: Count(d.Outstanding, "call") + " under way"})
	}
	return l.all()
}

// processNotices are about the process as a whole.
func (s *Status) processNotices(l *notices) {
	for _, why := range s.Unready {
		l.add(Notice{Severity: critical, Text: "Not ready: " + why, Runbook: runbook("DispatcherAbsent")})
	}
	if n := len(s.Problems); n > 0 && s.Snapshot != nil {
		l.add(Notice{
			Severity: critical,
			Text:     fmt.Sprintf("The last change of the configuration is refused (%s); snapshot %s stays", Count(n, "problem"), s.Snapshot.Short),
			Error:    s.Problems[0].String(),
			Remedy:   "Run dispatcher validate on what the sources hold now, and correct it.",
			Runbook:  runbook("DispatcherConfigurationRefused"),
		})
	}
}

// decisionNotices are about the decisions of the last ten minutes.
func (s *Status) decisionNotices(l *notices) {
	if n, who := s.since(s.FailOpens, func(d *Decision) []Involved { return d.Webhooks }); n > 0 {
		l.add(Notice{
			Severity: critical, Text: atLeast(n, "admission") + " failed open in the last ten minutes",
			Affects:  "They were allowed without " + listUpTo(shownNames, who.webhooks) + ", in " + listUpTo(shownNames, who.clusters) + ".",
			Error:    who.cause,
			Remedy:   "Look at Recent fail-opens for what got in, and check it.",
			Runbook:  runbook("DispatcherFailingOpen"),
			Webhooks: who.webhooks, Clusters: who.clusters,
		})
	}
	if n, who := s.since(s.Sheds, func(d *Decision) []Involved { return d.Webhooks }); n > 0 {
		l.add(Notice{
			Severity: critical, Text: atLeast(n, "admission") + " shed in the last ten minutes",
			Affects: "There was no free slot for a call; its failure policy decided.",
			Runbook: runbook("DispatcherShedding"), Webhooks: who.webhooks, Clusters: who.clusters,
		})
	}
	if n, who := s.since(s.Denials, func(d *Decision) []Involved { return d.Unavailable }); n > 0 {
		l.add(Notice{
			Severity: warning, Text: atLeast(n, "admission") + " denied in the last ten minutes would have gone on without a webhook whose call failed",
			Affects:  "Others denied them: nothing got in. Without a verdict were " + listUpTo(shownNames, who.webhooks) + ".",
			Error:    who.cause,
			Webhooks: who.webhooks, Clusters: who.clusters,
		})
	}
}

// pendingNotices are about webhooks that do not take part yet, one for each reason.
func (s *Status) pendingNotices(l *notices) {
	var order []string
	byReason := map[string][]*Pending{}
	for i := range s.Pending {
		p := &s.Pending[i]
		if byReason[p.Reason] == nil {
			order = append(order, p.Reason)
		}
		byReason[p.Reason] = append(byReason[p.Reason], p)
	}
	for _, reason := range order {
		var names []string
		previous := 0
		for _, p := range byReason[reason] {
			names = append(names, p.Webhook)
			if p.Previous {
				previous++
			}
		}
		affects := "Not called yet."
		if previous > 0 {
			affects = fmt.Sprintf("The previous version of %d serves meanwhile; the others are not called yet.", previous)
		}
		l.add(Notice{
			Severity: warning, Text: subject(names) + " pending", Affects: affects, Error: reason,
			Remedy: "Start the webhook where its configuration says that it is served.", Runbook: runbook("DispatcherWebhookPending"), Webhooks: names,
		})
	}
}

func (c *Certificate) notices(now time.Time, l *notices) {
	n := Notice{Remedy: "Replace " + c.File + "; it is read again by itself.", Runbook: runbook("DispatcherCertificateExpires")}
	switch {
	case now.After(c.NotAfter):
		n.Severity, n.Text = critical, fmt.Sprintf("The certificate %s (%s) has expired", c.Subject, c.Role)
		l.add(n)
	case now.Add(expiresSoon).After(c.NotAfter):
		n.Severity, n.Text = warning, fmt.Sprintf("The certificate %s (%s) expires at %s", c.Subject, c.Role, c.NotAfter.UTC().Format(time.RFC3339))
		l.add(n)
	}
	if c.Refused != "" {
		l.add(Notice{Severity: critical, Text: fmt.Sprintf("The files of %s are refused", c.Role), Affects: "Those that were read before are used.", Error: c.Refused, Remedy: "Correct " + c.File + "."})
	}
}

// party are those whom recent decisions name.
type party struct {
	webhooks, clusters []string
	cause              string // of the newest
}

// since returns how many of the decisions are recent and name somebody, and whom.
func (s *Status) since(list []Decision, named func(*Decision) []Involved) (n int, who party) {
	webhooks, clusters := map[string]bool{}, map[string]bool{}
	for i := range list {
		d := &list[i]
		those := named(d)
		if s.Now.Sub(d.Time) >= lately || len(those) == 0 {
			continue
		}
		n++
		clusters[d.Cluster] = true
		for _, w := range those {
			webhooks[w.String()] = true
			if who.cause == "" {
				who.cause = w.Cause
			}
		}
	}
	who.webhooks, who.clusters = sortedKeys(webhooks), sortedKeys(clusters)
	return n, who
}

// shownNames is how many names a text lists.
const shownNames = 3

// subject begins a sentence about webhooks, with its verb.
func subject(names []string) string {
	if len(names) == 1 {
		return "Webhook " + names[0] + " is"
	}
	return fmt.Sprintf("%d webhooks (%s) are", len(names), listUpTo(shownNames, names))
}

// listUpTo lists at most n names and says how many there are besides.
func listUpTo(n int, names []string) string {
	if len(names) <= n {
		return listed(names, "and", "")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
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
