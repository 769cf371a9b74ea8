// SPDX-License-Identifier: Apache-2.0

package load

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/admission-dispatcher/dispatcher/loadtest/history"
)

// Reason is why calls were lost, and how many.
type Reason struct {
	Reason string `json:"reason"`
	Calls  int    `json:"calls"`
}

const (
	maxReasons   = 10  // that are told apart
	shownMessage = 200 // bytes of what a server says beside another status than 200
)

// ownPort is the address of a caller's end of a connection, which is another for each.
var ownPort = regexp.MustCompile(`\S+:\d+->`)

// isLost reports whether the call has no answer, and why.
func isLost(c *history.Call) (why string, lost bool) {
	switch {
	case c.Err != "":
		return ownPort.ReplaceAllString(c.Err, ""), true
	case c.Status != 200 && c.Message != "":
		return fmt.Sprintf("HTTP status %d: %s", c.Status, c.Message), true
	case c.Status != 200:
		return fmt.Sprintf("HTTP status %d", c.Status), true
	}
	return "", false
}

// reasons are why calls were lost. Those beyond maxReasons are one.
type reasons map[string]int

func (r reasons) add(why string) {
	if _, known := r[why]; !known && len(r) >= maxReasons {
		why = "other reasons"
	}
	r[why]++
}

// list returns them, the most frequent first.
func (r reasons) list() []Reason {
	list := []Reason{}
	for _, why := range slices.Sorted(maps.Keys(r)) {
		list = append(list, Reason{why, r[why]})
	}
	slices.SortStableFunc(list, func(a, b Reason) int { return cmp.Compare(b.Calls, a.Calls) })
	return list
}
