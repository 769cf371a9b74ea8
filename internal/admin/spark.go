// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"fmt"
	"strings"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/status"
)

// The size of a sparkline in its own units, and the time that it spans.
const (
	sparkWidth  = 120
	sparkHeight = 28
	sparkMargin = 2
	sparkSpan   = 10 * time.Minute
	sparkGap    = 25 * time.Second // between samples, above which the line breaks
)

// spark is the p99 over the last ten minutes as lines, one for each stretch with
// calls.
type spark struct {
	Width, Height int
	Points        []string // path data
	Label         string
	Highest       string
}

func (s spark) viewBox() string { return fmt.Sprintf("0 0 %d %d", s.Width, s.Height) }

func (s spark) caption() string {
	text := "p99 of the last ten minutes"
	if s.Highest != "" {
		text += "; the highest is " + s.Highest
	}
	return text
}

func newSpark(now time.Time, samples []status.Sample) spark {
	s := spark{Width: sparkWidth, Height: sparkHeight}
	highest, last := 0.0, 0.0
	for _, p := range samples {
		if p.Attempts > 0 {
			highest, last = max(highest, p.P99), p.P99
		}
	}
	if highest == 0 {
		return s
	}
	var path strings.Builder
	var before time.Time
	end := func() {
		if path.Len() > 0 {
			s.Points = append(s.Points, path.String())
		}
		path.Reset()
	}
	for _, p := range samples {
		age := now.Sub(p.Time)
		if p.Attempts == 0 || age < 0 || age > sparkSpan {
			continue
		}
		if !before.IsZero() && p.Time.Sub(before) > sparkGap {
			end()
		}
		before = p.Time
		x := sparkWidth - float64(sparkWidth-2*sparkMargin)*float64(age)/float64(sparkSpan) - sparkMargin
		y := sparkHeight - sparkMargin - float64(sparkHeight-2*sparkMargin)*p.P99/highest
		if path.Len() == 0 {
			fmt.Fprintf(&path, "M%.1f %.1fh.1", x, y)
			continue
		}
		fmt.Fprintf(&path, "L%.1f %.1f", x, y)
	}
	end()
	s.Highest = seconds(highest)
	s.Label = fmt.Sprintf("p99 of the last ten minutes: %s now, %s at most", seconds(last), s.Highest)
	return s
}
