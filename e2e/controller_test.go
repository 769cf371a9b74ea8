// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/harness/sample"

	"k8s.io/apimachinery/pkg/util/diff"
)

// requestsOfController is how many each controller gets, unless FULL is set, which is
// fullRequests.
const requestsOfController, fullRequests = 100, 500

// atOnce is how many requests are under way in each cluster.
const atOnce = 6

// controllerRow is one of kube-apiserver's controllers, with what comes up.
type controllerRow struct {
	name  string
	kind  string // of namespaces that it is mostly asked about
	steps func(d sample.Dice, namespace, name string) []step
	comes []string
}

// K8 K10 K18 K19 TestControllers sends the same random requests to a kube-apiserver with its own
// controllers on and to one whose controllers are off, behind the dispatcher with plugins
// of their names. Verdict, code, reason, text, warnings and resulting object are equal.
func TestControllers(t *testing.T) {
	n, seed := sizeOfRun(t)
	p := controllerClusters(t)
	p.behind(t, controllersOn)
	for _, c := range p.clusters {
		c.apply(t, rightsOfTesters)
	}
	p.storeWorld(t, sample.NewDice(seed, 0))
	p.known(t)
	progress("both clusters know the same objects")

	var trials []*trial
	for i, row := range controllerRows() {
		d := sample.NewDice(seed, uint64(i+1))
		for j := range n {
			kind := row.kind
			if d.One(8) {
				kind = sample.Pick(d, kindsOfNamespaces...)
			}
			name := fmt.Sprintf("c%d-%d", i, j)
			trials = append(trials, &trial{controller: row.name, steps: row.steps(d, fmt.Sprintf("%s-%d", kind, d.IntN(namespacesOfAKind)), name)})
		}
	}
	p.send(t, trials)
	progress("%d trials were sent to both", len(trials))
	t.Run("EventRateLimit", p.compareEvents)
	rows := map[string]int{}
	for _, row := range controllerRows() {
		t.Run(row.name, func(t *testing.T) {
			came := map[string]int{}
			for _, one := range trials {
				if one.controller == row.name {
					one.compare(t, came, rows)
				}
			}
			t.Log(n, "trials:", came)
			for _, what := range row.comes {
				if came[what] < n/50 {
					t.Errorf("%s came up %d times in %d", what, came[what], n)
				}
			}
		})
	}
	for _, row := range slices.Sorted(maps.Keys(rows)) {
		t.Logf("%4d differ by %q", rows[row], row)
	}
}

// sizeOfRun is how many requests are drawn, and from which seed: always the same ones, but
// in full.
func sizeOfRun(t *testing.T) (n int, seed uint64) {
	t.Helper()
	n, seed = requestsOfController, 3
	if os.Getenv("FULL") != "" {
		n, seed = fullRequests, uint64(time.Now().UnixNano())
	}
	if s := os.Getenv("SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("SEED=%d", seed)
	return n, seed
}

// send sends all trials to both clusters, some at once.
func (p *pairOfControllers) send(t *testing.T, trials []*trial) {
	t.Helper()
	work, done := make(chan func(), len(trials)*2), make(chan struct{})
	for _, one := range trials {
		for i, c := range p.clusters {
			work <- func() {
				var err error
				if one.answers[i], err = c.try(t, one.steps); err != nil {
					t.Errorf("%s: %v", one.controller, err)
				}
			}
		}
	}
	close(work)
	for range 2 * atOnce {
		go func() {
			defer func() { done <- struct{}{} }()
			for do := range work {
				do()
			}
		}()
	}
	for range 2 * atOnce {
		<-done
	}
}

// compare compares what came of each step.
func (one *trial) compare(t *testing.T, came, rows map[string]int) {
	t.Helper()
	for i := range max(len(one.answers[0]), len(one.answers[1])) {
		if i >= min(len(one.answers[0]), len(one.answers[1])) {
			t.Errorf("step %d was sent to one of them", i)
			return
		}
		theirs, ours := one.answers[0][i].outcome(), one.answers[1][i].outcome()
		row, ok := explainedBy(one.controller, theirs, ours)
		s := one.steps[i]
		body, _ := json.Marshal(s.body)
		if !ok {
			t.Errorf("%s %s: the outcomes differ (-theirs +ours):\n%s\n%s\n%s", s.method, s.path, diff.Diff(theirs, ours), ours.more, body)
			came["different"]++
			continue
		}
		if row != "" {
			rows[row]++
		}
		if (theirs.Code < 400) != (ours.Code < 400) {
			return
		}
		came["requests"]++
		switch {
		case ours.by == one.controller:
			came[fmt.Sprint("denied ", theirs.Code)]++
		case ours.by != "":
			came["denied by another"]++
		case ours.Code >= 400:
			came[fmt.Sprint("refused ", ours.Code)]++
		case s.method == "POST" && one.changed(body, ours.Object):
			came["changed"]++
		default:
			came["allowed"]++
		}
		if len(ours.Warnings) > 0 {
			came["warned"]++
		}
	}
}

// text is an outcome that can be compared.
func (o outcome) text() string {
	data, _ := json.MarshalIndent(o, "", " ")
	return string(data)
}
