// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"
)

// share is what something has of a profile.
type share struct {
	Name    string  `json:"name"`
	Percent float64 `json:"percent"`
}

// stack is how often functions were found running: the innermost first.
type stack struct {
	took   time.Duration
	frames []string
}

// parseStacks reads what go tool pprof -traces prints of a CPU profile: a line of
// dashes, then the time and the innermost function in one line, and the others
// below it.
func parseStacks(text string) ([]stack, error) {
	var stacks []stack
	begins := false
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "-----------+"):
			begins = true
		case len(fields) == 0:
		case begins && len(fields) > 1:
			took, err := time.ParseDuration(fields[0])
			if err != nil {
				continue // a label
			}
			stacks, begins = append(stacks, stack{took, []string{fields[1]}}), false
		case len(stacks) > 0 && !begins:
			last := &stacks[len(stacks)-1]
			last.frames = append(last.frames, fields[0])
		}
	}
	if len(stacks) == 0 {
		return nil, errors.New("the profile is empty")
	}
	return stacks, nil
}

// divide returns what each component has of the stacks, and of the rest what each
// innermost function has.
func divide(stacks []stack) (shares, unruled []share) {
	all := rules()
	var total time.Duration
	of, leaves := map[component]time.Duration{}, map[string]time.Duration{}
	for i := range stacks {
		s := &stacks[i]
		c, _ := s.componentOf(all)
		total += s.took
		of[c] += s.took
		if c == rest {
			leaves[s.frames[0]] += s.took
		}
	}
	percent := func(d time.Duration) float64 { return 100 * float64(d) / float64(total) }
	for _, c := range components() {
		shares = append(shares, share{string(c), percent(of[c])})
	}
	for name, took := range leaves {
		unruled = append(unruled, share{name, percent(took)})
	}
	slices.SortFunc(unruled, func(a, b share) int {
		return cmp.Or(cmp.Compare(b.Percent, a.Percent), strings.Compare(a.Name, b.Name))
	})
	return shares, unruled
}
