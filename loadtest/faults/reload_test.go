// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/admission-dispatcher/dispatcher/loadtest/history"
	"github.com/admission-dispatcher/dispatcher/loadtest/script"
)

// generation is one of the configurations of a row that reloads.
type generation struct {
	number  int
	renamed time.Duration // when its file was there
	seen    time.Duration // when the first answer came that shows it; 0: none did
}

// moving is the webhook that every generation has at another path. Its path and its
// verdicts carry the number, so that no two generations mean the same.
const moving = "well-moving.example.com"

const reloadInterval = 50 * time.Millisecond

// hooksOf are the webhooks of a generation: one that is always the same, one that
// moves, and a guest that comes with this generation and goes with it.
func hooksOf(number int) []history.Webhook {
	version := strconv.Itoa(number)
	hook := func(order int, name, version string) history.Webhook {
		h := history.Webhook{Name: name, Version: version, Phase: history.Validating, Order: order, FailurePolicy: history.Fail,
			SideEffects: history.NoSideEffects, Timeout: 5 * time.Second, Truth: script.Validating(name)}
		if version != "" {
			h.Truth = script.Validating(name + "/" + version)
		}
		return h
	}
	const guests = 4
	return []history.Webhook{hook(0, well, ""), hook(1, moving, version), hook(2, fmt.Sprintf("well-guest-%d.example.com", number%guests), version)}
}

// spoiled is a configuration that would be the next generation but for one thing.
func spoiled(number int) []byte {
	next := manifests(hooksOf(number))
	switch number / invalidEvery % 3 {
	case 0:
		return next[:len(next)*9/10]
	case 1:
		return append(next, "---\napiVersion: dispatcher.dev/v1alpha1\nkind: WebhookBinding\nmetadata: {name: more}\nspec: {webhooks: [\"*/*\"], mode: Nonsense}\n"...)
	default:
		return append(next, "---\nkind: [\n"...)
	}
}

const invalidEvery = 20

// reloads changes the configuration n times. Every twentieth change is for the worse,
// and must be refused; effective says whether all others have taken effect.
func reloads(n int) func(*record, *world) {
	return func(rec *record, w *world) {
		const file = "registry/webhooks.yaml"
		w.generations = []generation{{}}
		const tooMany = 10 // slow ones, with which p99 is surely lost
		slow := 0
		for number := 1; number <= n && len(rec.failures) == 0; number++ {
			if number%invalidEvery == invalidEvery/4 {
				before := w.metric(w.servers[0], "dispatcher_config_reloads_total", `result="failure"`)
				w.write(file, spoiled(number))
				if !eventually(func() bool {
					return w.metric(w.servers[0], "dispatcher_config_reloads_total", `result="failure"`) > before
				}) {
					rec.errorf("configuration %d is not valid, and was not refused", number)
				}
				pass(2 * reloadInterval) // in which nothing may change
				continue
			}
			g := generation{number: number, renamed: w.now()}
			w.write(file, manifests(hooksOf(number)))
			if !eventually(func() bool { return w.well.Asked(fmt.Sprintf("%s/%d", moving, number)) }) {
				rec.errorf("configuration %d has had no effect %v after its file was there", number, longest)
			}
			w.generations = append(w.generations, g)
			if w.now()-g.renamed > reloadInterval+time.Second {
				slow++
			}
			if slow > tooMany+n/100 {
				break
			}
		}
	}
}

// generationsSeen are the Snapshots of a row that reloads. A generation may explain
// an answer from the moment at which its file is there until there is an answer
// that shows a later one. Its hash is what the answers that show it say it is.
func generationsSeen(w *world, rec *record) []history.Snapshot {
	shown := map[string]int{}
	for _, a := range rec.attempts {
		if a.Webhook == moving {
			shown[a.UID], _ = strconv.Atoi(a.Version)
		}
	}
	hashes, at := map[int]string{}, map[int]int{}
	for i, g := range w.generations {
		at[g.number] = i
	}
	slices.SortFunc(rec.calls, func(a, b history.Call) int { return cmp.Compare(a.Done, b.Done) })
	for _, c := range rec.calls {
		number, ok := shown[c.UID]
		i, known := at[number]
		if !ok || !known || c.Err != "" {
			continue
		}
		if g := &w.generations[i]; g.seen == 0 {
			g.seen = c.Done
		}
		if hash := c.Annotations["dispatcher.dev.snapshot"]; hash != "" && hashes[number] == "" {
			hashes[number] = hash
		}
	}
	var all []history.Snapshot
	for i, g := range w.generations {
		s := history.Snapshot{Hash: hashes[g.number], From: g.renamed, Until: never, Webhooks: hooksOf(g.number)}
		for _, later := range w.generations[i+1:] {
			if later.seen > 0 {
				s.Until = later.seen
				break
			}
		}
		all = append(all, s)
	}
	return all
}

// effective: reloads take effect in time, as seen from outside, and each Snapshot has
// a hash of its own.
func effective(n int) func(*findings, *world, *record) {
	return func(t *findings, w *world, rec *record) {
		var took []time.Duration
		for _, g := range w.generations[1:] {
			if g.seen > 0 {
				took = append(took, g.seen-g.renamed)
			}
		}
		if valid := n - n/invalidEvery; len(took) < valid {
			t.Errorf("%d changes of the configuration have taken effect, %d were made", len(took), valid)
		}
		if len(took) == 0 {
			return
		}
		slices.Sort(took)
		p99 := took[(len(took)-1)*99/100]
		progress("F36  %d changes took effect, p50 %v, p99 %v, max %v", len(took), took[len(took)/2].Round(time.Millisecond),
			p99.Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
		// The answer that shows the change takes its time as any other.
		if bound := reloadInterval + time.Second + quantile(rec.waits(), 0.99); p99 > bound {
			t.Errorf("a change of the configuration takes effect after %v (p99), the bound is %v", p99, bound)
		}
		hashes := map[string]bool{}
		for _, s := range generationsSeen(w, rec) {
			if hashes[s.Hash] && s.Hash != "" {
				t.Errorf("two configurations have the name %s", s.Hash)
			}
			hashes[s.Hash] = true
		}
		if answered := slices.Sorted(maps.Keys(hashes)); len(answered) < len(took)/2 {
			t.Errorf("answers name %d configurations only: %s", len(answered), strings.Join(answered, ", "))
		}
	}
}
