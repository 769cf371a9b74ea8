// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/status"
)

// page is what every page has.
type page struct {
	Title    string
	Status   *status.Status
	Sections []section
}

type section struct{ Anchor, Name string }

func newPage(s *status.Status, title string) page {
	return page{Title: title, Status: s, Sections: []section{
		{"webhooks", "Webhooks"}, {"endpoints", "Endpoints"}, {"failopens", "Fail-opens"}, {"denials", "Denials"},
		{"clusters", "Clusters"}, {"history", "History"}, {"certificates", "Certificates"},
	}}
}

// tile is one number in large type.
type tile struct{ Name, Value, More, Class string }

// decisions is a list of them with what it says when it is empty.
type decisions struct {
	Caption, Empty string
	Now            time.Time
	Rows           []status.Decision
}

func newDecisions(s *status.Status, caption, empty string, rows []status.Decision) decisions {
	return decisions{Caption: caption, Empty: empty, Now: s.Now, Rows: rows}
}

// absent is the page of what is not there.
type absent struct {
	page
	What string
}

func newAbsent(s *status.Status, what string) absent { return absent{newPage(s, "not here"), what} }
