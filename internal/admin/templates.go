// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/status"
)

// badge is a state in words, with the class that gives it its shape and colour.
type badge struct{ Class, Text string }

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

func since(now, then time.Time) string { return span(now.Sub(then)) }

func clusterLink(name string) string { return "/clusters/" + url.PathEscape(name) }

// onFailure is what becomes of an admission when a call fails, in a word.
func onFailure(w status.Webhook) string {
	return map[string]string{status.Deny: "denied", status.Allow: "allowed", status.Nothing: "no effect"}[w.OnFailure]
}

func webhookLink(configuration, name string) string {
	return "/webhooks/" + url.PathEscape(configuration) + "/" + url.PathEscape(name)
}

// failurePolicy says what is done before that.
func failurePolicy(w status.Webhook) string {
	if w.Retry {
		return w.FailurePolicy + ", after retries"
	}
	return w.FailurePolicy
}

// request says what was asked for, as kubectl would.
func request(d status.Decision) string {
	resource := d.Resource
	if d.Group != "" {
		resource += "." + d.Group
	}
	if d.Subresource != "" {
		resource += "/" + d.Subresource
	}
	return strings.TrimSuffix(fmt.Sprintf("%s %s %s", d.Operation, resource, strings.TrimPrefix(d.Namespace+"/"+d.Name, "/")), " ")
}

// requestNote says which request it was.
func requestNote(d status.Decision) string {
	if d.DryRun {
		return d.Phase + " · dry run · uid " + d.UID
	}
	return d.Phase + " · uid " + d.UID
}

// why says what a webhook's part came to, beyond what the list is about.
func why(w status.Involved) string {
	text := w.Cause
	if w.Result == "skipped" {
		text = strings.TrimSpace("skipped " + text)
	}
	if w.FailOpenRule != "" {
		text += ", rule " + w.FailOpenRule
	}
	return text
}

// answer is what the caller got.
func answer(d status.Decision) string {
	switch {
	case d.Allowed:
		return "allowed"
	case d.Code == 0:
		return "denied"
	}
	return fmt.Sprintf("denied %d", d.Code)
}

func labels(m map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		pairs = append(pairs, key+"="+m[key])
	}
	return strings.Join(pairs, ", ")
}

// first returns at most n of a list.
func first[T any](n int, list []T) []T { return list[:min(n, len(list))] }

// separator stands before an element of a list.
func separator(i int) string {
	if i == 0 {
		return ""
	}
	return ", "
}

// more says how many first left out.
func more(n, of int) string {
	if of <= n {
		return ""
	}
	return fmt.Sprintf(" and %d more", of-n)
}

func contains(list []string, s string) bool { return slices.Contains(list, s) }

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
