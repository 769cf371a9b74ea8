// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"fmt"
	"strconv"
	"time"
)

// latency is a quantile of so many attempts.
func latency(attempts int64, s float64) string {
	if attempts == 0 {
		return "–"
	}
	return seconds(s)
}

// seconds writes a duration with two digits or so.
func seconds(s float64) string {
	switch {
	case s >= 10:
		return strconv.FormatFloat(s, 'f', 0, 64) + " s"
	case s >= 1:
		return strconv.FormatFloat(s, 'g', 2, 64) + " s"
	case s >= 0.01:
		return strconv.FormatFloat(s*1e3, 'f', 0, 64) + " ms"
	case s >= 0.001:
		return strconv.FormatFloat(s*1e3, 'f', 1, 64) + " ms"
	}
	return strconv.FormatFloat(s*1e6, 'f', 0, 64) + " µs"
}

// ago says how long ago something was.
func ago(now, then time.Time) string {
	if then.IsZero() {
		return "never"
	}
	if d := now.Sub(then); d >= time.Second {
		return span(d) + " ago"
	}
	return "just now"
}

func inFuture(d time.Duration) string { return "ends in " + span(d) }

// span writes a time as people say it, in its two largest units.
func span(d time.Duration) string {
	d = max(d, 0)
	const day = 24 * time.Hour
	switch {
	case d >= 3*day:
		return fmt.Sprintf("%d days", d/day)
	case d >= day:
		return twoUnits(d/day, "d", d%day/time.Hour, "h")
	case d >= time.Hour:
		return twoUnits(d/time.Hour, "h", d%time.Hour/time.Minute, "min")
	case d >= time.Minute:
		return twoUnits(d/time.Minute, "min", d%time.Minute/time.Second, "s")
	}
	return fmt.Sprintf("%d s", d/time.Second)
}

func twoUnits(large time.Duration, unit string, small time.Duration, smallUnit string) string {
	if small == 0 {
		return fmt.Sprintf("%d %s", large, unit)
	}
	return fmt.Sprintf("%d %s %d %s", large, unit, small, smallUnit)
}

// number groups digits by thousands.
func number(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}

// share is a part of a whole in per cent.
func share(part, whole int64) string {
	switch {
	case whole == 0:
		return "–"
	case part > 0 && part*1000 < whole:
		return "< 0.1 %"
	}
	return strconv.FormatFloat(100*float64(part)/float64(whole), 'f', 1, 64) + " %"
}
