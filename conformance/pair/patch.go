// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/admission-dispatcher/dispatcher/conformance/caller"
)

var ofRound = regexp.MustCompile(`^(patch|mutation)\.webhook\.admission\.k8s\.io/(round_(\d)_index_\d+)$`)

// turn is one time that the API server called a mutating webhook.
type turn struct {
	round, webhook string // configuration/webhook
	operations     int    // 0: no patch
	mutated        bool
}

// turns are all times that the API server called one, by round and index.
func (o *Oracle) turns() (map[string]*turn, error) {
	turns := map[string]*turn{}
	for key, value := range o.Annotations {
		m := ofRound.FindStringSubmatch(key)
		if m == nil {
			continue
		}
		var said struct {
			Configuration, Webhook string
			Mutated                bool
			Patch                  []json.RawMessage
		}
		if err := json.Unmarshal([]byte(value), &said); err != nil {
			return nil, fmt.Errorf("annotation %s: %w", key, err)
		}
		t := turns[m[2]]
		if t == nil {
			t = &turn{round: m[3], webhook: strings.TrimPrefix(said.Configuration, o.Place) + "/" + said.Webhook}
			turns[m[2]] = t
		}
		t.operations += len(said.Patch)
		t.mutated = t.mutated || said.Mutated
	}
	return turns, nil
}

// patches compares which webhook patched in which round, with how many operations.
func (p *Pair) patches(direct *Oracle) ([]Difference, error) {
	turns, err := direct.turns()
	if err != nil {
		return nil, err
	}
	was := map[string]bool{}
	for _, t := range turns {
		if t.operations > 0 {
			was[fmt.Sprintf("%s (%d operations, round %s)", t.webhook, t.operations, t.round)] = true
		}
	}
	list, cut := entries(&p.Through, "mutated")
	is := map[string]bool{}
	for _, entry := range list {
		is[strings.TrimPrefix(entry, p.Place)] = true
	}
	missing, further := without(was, is), without(is, was)
	if (cut || len(missing) == 0) && len(further) == 0 {
		return nil, nil
	}
	row := ""
	if (cut || len(missing) == 0) && !slices.ContainsFunc(further, func(entry string) bool { return !again(entry, turns) }) {
		row = Again
	}
	return []Difference{{Row: row, Aspect: "patches by webhook and round", Direct: slices.Sorted(maps.Keys(was)), Through: slices.Sorted(maps.Keys(is))}}, nil
}

var secondTurn = regexp.MustCompile(`^(\S+) \(\d+ operations, round 1\)$`)

// again reports whether an entry is one of a second round that only the dispatcher
// needs: of a webhook that was called in the first, where the patch of another one
// left the object as it was.
func again(entry string, turns map[string]*turn) bool {
	m := secondTurn.FindStringSubmatch(entry)
	if m == nil {
		return false
	}
	called, thereAndBack := false, false
	for _, t := range turns {
		called = called || t.round == "0" && t.webhook == m[1]
		thereAndBack = thereAndBack || t.webhook != m[1] && t.operations > 0 && !t.mutated
	}
	return called && thereAndBack
}

// without returns what is in some and not in others.
func without(some, others map[string]bool) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(some)) {
		if !others[key] {
			out = append(out, key)
		}
	}
	return out
}

// left says how many entries did not fit.
var left = regexp.MustCompile(` and \d+ more$`)

// entries are those of one of the dispatcher's own annotations, over all entries of
// the registration, and whether a list was too long. What is cut off is no entry.
func entries(through *caller.Result, name string) (all []string, cut bool) {
	for key, value := range through.Annotations {
		if !strings.HasSuffix(key, "/"+ownAnnotations+name) {
			continue
		}
		whole := left.ReplaceAllString(value, "")
		cut = cut || whole != value
		for _, entry := range strings.Split(whole, "; ") {
			if _, webhook, ok := strings.Cut(entry, "/"); ok && name != "mutated" {
				entry = webhook // the API server names no configuration
			}
			all = append(all, entry)
		}
	}
	return all, cut
}
