// SPDX-License-Identifier: Apache-2.0

package dashboards_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/loadtest/proxy"
	"github.com/admission-dispatcher/dispatcher/loadtest/script"
)

// The alerts that fire here, by what is broken.
var (
	ofWebhooks = []string{
		"DispatcherFailingOpen", "DispatcherFailingClosed", "DispatcherBreakerOpen", "DispatcherBreakerOpenForClusters", "DispatcherTargetDown",
		"DispatcherWebhookSlow", "DispatcherBudgetExhausted", "DispatcherDeadlineNear", "DispatcherShedding",
	}
	ofConfiguration = []string{
		"DispatcherConfigurationRefused", "DispatcherConfigurationDiffers", "DispatcherWebhookPending",
		"DispatcherCertificateExpires", "DispatcherCertificateExpiresToday",
	}
	ofOthers   = []string{"DispatcherNoTraffic", "DispatcherTelemetryDropped", "DispatcherRefusing"}
	ofReplicas = []string{"DispatcherDown", "DispatcherAbsent", "DispatcherNamespacesStale"}
)

// unplayed are the alerts that do not fire here, and why.
var unplayed = map[string]string{
	"DispatcherConfigurationStale": "four hours stand in its threshold",
	"DispatcherSeriesOverflow":     "it takes ten thousand series",
	"DispatcherMemoryHigh":         "it takes 2 GiB",
	"DispatcherConnectionsHigh":    "it takes 3276 connections",
	"DispatcherDescriptorsHigh":    "it takes most of the descriptors of a process",

	"DispatcherGenerationHeldBack":    noMirror,
	"DispatcherGenerationQuarantined": noMirror,
	"DispatcherGenerationOld":         noMirror,
	"DispatcherObjectsRefused":        noMirror,
	"DispatcherRegistryUnheard":       noMirror,
}

const noMirror = "the registry is a directory"

// darkWhileWell are the panels that show nothing until there is something to show.
var darkWhileWell = map[string]string{
	"dispatcher-fleet, Failing open":                              "a webhook that fails open",
	"dispatcher-fleet, Failing closed":                            "a webhook that fails closed",
	"dispatcher-fleet, Shed by cluster":                           "no place",
	"dispatcher-fleet, Age of a refused configuration's stand-in": "a configuration that is refused",
	"dispatcher-fleet, Turned away":                               "a caller that is turned away",
	"dispatcher-cluster, Turned away":                             "a caller that is turned away",
	"dispatcher-cluster, Shed":                                    "no place",
	"dispatcher-cluster, Failing open by webhook":                 "a webhook that fails open",
	"dispatcher-webhook, Errors by cause":                         "a webhook that fails",
	"dispatcher-webhook, Failing closed":                          "a webhook that fails closed",
	"dispatcher-webhook, Failing open":                            "a webhook that fails open",
	"dispatcher-webhook, Failing open by cause":                   "a webhook that fails open",
	"dispatcher-webhook, Extra attempts refused":                  "a budget that is spent",
	"dispatcher-runtime, Series beyond the limit":                 "ten thousand series",

	"dispatcher-fleet, Registry: generations":            noMirror,
	"dispatcher-fleet, Registry: held back":              noMirror,
	"dispatcher-fleet, Registry: quarantined or crashed": noMirror,
	"dispatcher-fleet, Registry: older than the API":     noMirror,
	"dispatcher-fleet, Registry: refused objects":        noMirror,
	"dispatcher-fleet, Registry: API last heard":         noMirror,
}

// darkToTheEnd are those that nothing here lights up.
var darkToTheEnd = map[string]string{
	"dispatcher-runtime, Series beyond the limit": "ten thousand series",

	"dispatcher-fleet, Registry: generations":            noMirror,
	"dispatcher-fleet, Registry: held back":              noMirror,
	"dispatcher-fleet, Registry: quarantined or crashed": noMirror,
	"dispatcher-fleet, Registry: older than the API":     noMirror,
	"dispatcher-fleet, Registry: refused objects":        noMirror,
	"dispatcher-fleet, Registry: API last heard":         noMirror,
}

// TestLive has Prometheus watch two replicas through an outage: each panel shows
// something, and alerts fire and clear. A second of it is a minute of the rules.
func TestLive(t *testing.T) {
	if os.Getenv("LIVE") == "" || testing.Short() {
		t.Skip("it takes more than a minute: make alerts")
	}
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("prometheus is missing: apt-get install --no-install-recommends prometheus, which also starts a service")
	}
	f := newFleet(t)
	rules := filepath.Join(f.dir, "rules")
	f.must(os.Mkdir(rules, 0o700))
	writeScaledRules(t, rules)
	f.copy("prometheus.yaml", "prometheus.yaml")
	server := startPrometheus(t, program, f.dir)
	story{f, newPanels(t, server), newWatch(t, server)}.play()
}

// TestLiveIsComplete wants each alert to fire in TestLive, or a reason.
func TestLiveIsComplete(t *testing.T) {
	known := alerts(t)
	got := slices.Concat(ofWebhooks, ofConfiguration, ofOthers, ofReplicas, slices.Collect(maps.Keys(unplayed)))
	slices.Sort(got)
	if want := slices.Sorted(maps.Keys(known)); !slices.Equal(got, want) {
		t.Errorf("alerts %q, want %q", got, want)
	}
}

// story is what happens to the fleet.
type story struct {
	*fleet
	panels *panels
	watch  *watch
}

func (s story) play() {
	silence := s.begin()
	s.watch.restart()
	s.outage(silence)
	s.watch.forget(ofReplicas...) // a machine that is too busy can miss a scrape
	s.stopReplicas()
	s.startReplicas()
	for name, reason := range unplayed {
		if len(s.watch.silent(name)()) == 0 {
			s.t.Errorf("%s has fired, although %s", name, reason)
		}
	}
	s.watch.table()
}

// begin has all clusters call until everything is seen to be well. It returns what
// silences the cluster west.
func (s story) begin() (silence func()) {
	s.call(east)
	s.call(north)
	silence = s.call(west)
	s.watch.until("all is well, and seen", func() []string { return append(s.panels.look(darkWhileWell), s.watch.active()...) })
	s.watch.until("the cluster west is known", func() []string {
		return s.panels.unmet(`sum(rate(dispatcher_requests_total{cluster="west"}[1d])) > 0.02`)
	})
	return silence
}

// outage breaks everything but the replicas, and puts it right again.
func (s story) outage(silence func()) {
	s.breakWebhooks()
	s.breakConfiguration()
	silence()
	s.must(s.collector.Set(proxy.Fault{Silent: true}))
	goAway := s.call(lost)
	s.watch.tell("webhooks fail, the configuration is changed for the worse, a cluster is silent, another calls with a wrong path, the collector of traces is stuck")
	s.watch.until("webhooks: all alerts have fired", s.watch.silent(ofWebhooks...))
	s.watch.until("configuration: all alerts have fired", s.watch.silent(ofConfiguration...))
	s.watch.until("others: all alerts have fired", s.watch.silent(ofOthers...))
	s.watch.until("each panel has shown something", func() []string { return s.panels.look(darkToTheEnd) })

	s.repair()
	goAway()
	s.call(west)
	s.watch.tell("all is put right")
	s.watch.until("all alerts have cleared", s.watch.active)
}

func (s story) breakWebhooks() {
	s.hooks.Behave("guard.example.com", script.Behaviour{Hang: true})
	s.hooks.Behave("notary.example.com", script.Behaviour{Hang: true})
	s.must(s.away.Set(proxy.Fault{Refuse: true, Sever: true}))
	s.hooks.Behave("quota.example.com", script.Behaviour{Form: script.Persuasive})
	s.hooks.Behave("scan.example.com", script.Behaviour{Delay: 6 * time.Second})
}

func (s story) breakConfiguration() {
	s.copy("coming.yaml", "first/registry/coming.yaml")
	s.write("second/registry/broken.yaml", "kind: [")
	s.certify(12 * time.Hour)
}

func (s story) repair() {
	for _, name := range hurt {
		s.hooks.Behave(name, script.Behaviour{})
	}
	s.must(s.away.Set(proxy.Fault{}))
	s.remove("first/registry/coming.yaml")
	s.remove("second/registry/broken.yaml")
	s.certify(aYear)
	s.must(s.collector.Set(proxy.Fault{}))
}

// stopReplicas ends one replica, and then the other without warning.
func (s story) stopReplicas() {
	s.replicas[1].End()
	s.watch.tell("one replica is stopped")
	s.watch.until("it is missed", s.watch.silent("DispatcherDown"))
	s.replicas[0].Kill()
	s.watch.tell("the other replica is killed")
	s.watch.until("both are missed", s.watch.silent("DispatcherAbsent"))
}

// startReplicas starts both while the API of a cluster is out of reach, and then
// lets it answer.
func (s story) startReplicas() {
	s.must(s.api.Set(proxy.Fault{Refuse: true, Sever: true}))
	for _, r := range s.replicas {
		s.start(r)
	}
	s.watch.tell("both are back, without the API of a cluster")
	s.watch.until("replicas: all alerts have fired", s.watch.silent(ofReplicas...))
	s.must(s.api.Set(proxy.Fault{}))
	s.watch.tell("the API is back")
	s.watch.until("all alerts have cleared", s.watch.active)
}
