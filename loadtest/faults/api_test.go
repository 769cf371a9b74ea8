// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"cmp"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/admission-dispatcher/dispatcher/loadtest/history"
	"github.com/admission-dispatcher/dispatcher/loadtest/load"
)

// lists is how the API of the cluster east lists all objects of a resource. They never come
// by a watch then, and each is asked for. Those of other clusters do.
type lists string

const (
	unlisted lists = "unlisted" // an error
	unending lists = "unending" // it never ends
	listed   lists = "listed"
)

// clusterAPI is the API of a cluster. What it is asked for by name, or in one namespace, is
// there, and all users may do everything.
type clusterAPI struct {
	*httptest.Server
	lists     lists
	authority []byte
	does      atomic.Pointer[http.HandlerFunc] // in place of answering; nil: it answers
}

func (w *world) startAPIs(l lists) {
	w.apis = map[string]*clusterAPI{}
	for _, c := range w.clusters {
		a := &clusterAPI{lists: listed, authority: w.authority.PEM}
		if c.Name == "east" {
			a.lists = l
		}
		a.Server = httptest.NewUnstartedServer(http.HandlerFunc(a.serve))
		a.Config.ErrorLog = log.New(io.Discard, "", 0)
		a.TLS = &tls.Config{Certificates: []tls.Certificate{w.certificate(w.authority, served)}, MinVersion: tls.VersionTLS12}
		a.StartTLS()
		w.t.Cleanup(func() { a.CloseClientConnections(); a.Close() })
		w.apis[c.Name] = a
	}
}

func (a *clusterAPI) kubeconfig() []byte {
	return fmt.Appendf(nil, `current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: a, user: {token: abc}}]
`, a.URL, base64.StdEncoding.EncodeToString(a.authority))
}

func (a *clusterAPI) serve(rw http.ResponseWriter, r *http.Request) {
	rw.Header().Set("Content-Type", "application/json")
	if do := a.does.Load(); do != nil {
		(*do)(rw, r)
		return
	}
	namespaced := strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/")
	switch {
	case strings.HasPrefix(r.URL.Path, openAPI):
		describe(rw, r)
	case r.Method == http.MethodPost:
		var review map[string]any
		_ = json.NewDecoder(r.Body).Decode(&review) // what is wrong with it is seen in what comes of it
		review["status"] = map[string]any{"allowed": true}
		rw.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(rw).Encode(review)
	case namespaced && strings.HasSuffix(r.URL.Path, "/configmaps/limits"):
		_, _ = fmt.Fprintf(rw, limitsOf, strings.Split(r.URL.Path, "/")[4])
	case namespaced:
		_, _ = io.WriteString(rw, `{"metadata":{"resourceVersion":"1"},"items":[]}`)
	case r.URL.Query().Get("watch") != "":
		_ = http.NewResponseController(rw).Flush()
		<-r.Context().Done()
	case a.lists == listed && strings.HasSuffix(r.URL.Path, "/configmaps"):
		items := make([]string, len(manyNamespaces))
		for i := range items {
			items[i] = fmt.Sprintf(limitsOf, manyNamespaces[i].Namespace)
		}
		_, _ = fmt.Fprintf(rw, `{"metadata":{"resourceVersion":"1"},"items":[%s]}`, strings.Join(items, ","))
	case a.lists == listed:
		_, _ = io.WriteString(rw, `{"metadata":{"resourceVersion":"1"},"items":[]}`)
	case a.lists == unending:
		_, _ = io.WriteString(rw, `{"metadata":{"resourceVersion":"1"},"items":[`)
		for r.Context().Err() == nil {
			_, _ = io.WriteString(rw, "\n")
			_ = http.NewResponseController(rw).Flush()
			pass(10 * time.Millisecond)
		}
	default:
		http.Error(rw, "{}", http.StatusServiceUnavailable)
	}
}

const limitsOf = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"limits","namespace":%q,"resourceVersion":"1"},"data":{"pods":"many"}}`

// apiOfEast has the API of the cluster east do something else; nil: it answers again.
func apiOfEast(do http.HandlerFunc) func(*world) {
	return func(w *world) {
		if do == nil {
			w.apis["east"].does.Store(nil)
			return
		}
		w.apis["east"].does.Store(&do)
	}
}

// hangs never answers.
func hangs(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// refuses closes the connection.
func refuses(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// manyNamespaces are more than anybody knows anything about.
var manyNamespaces = func() []load.Resource {
	all := make([]load.Resource, 1000)
	for i := range all {
		all[i] = load.Pods
		all[i].Namespace = fmt.Sprint("n-", i)
	}
	return all
}()

const policyOfPods = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  failurePolicy: Ignore
  matchConstraints: {resourceRules: [{operations: ["*"], apiGroups: [""], apiVersions: [v1], resources: [pods]}]}
  %[2]s
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s, annotations: {dispatcher.dev/params: Cluster}}
spec: {policyName: %[1]s, validationActions: [Deny]%[3]s}
`

var (
	limitedPolicy = fmt.Sprintf(policyOfPods, "limited", `paramKind: {apiVersion: v1, kind: ConfigMap}
  validations: [{expression: "params.data.pods == 'many'"}]`, ", paramRef: {name: limits, parameterNotFoundAction: Allow}")
	// An expression has the error of the authorizer as a value, of which this one makes an
	// error of its own.
	askingPolicy = fmt.Sprintf(policyOfPods, "asking", `variables: [{name: may, expression: "authorizer.requestResource.check('use')"}]
  validations: [{expression: "variables.may.errored() ? int(request.name) == 1 : variables.may.allowed()"}]`, "")
	limitsObject = "apiVersion: dispatcher.dev/v1alpha1\nkind: Plugin\nmetadata: {name: limits}\nspec: {plugin: LimitRanger, phases: [Validating], failurePolicy: Ignore}\n"
)

// limitsOfWaiting has so few slots that the calls of one cluster could take them all.
const (
	limitsOfWaiting = "limits: {admissions: 64}\n" + patientConnect
	lookupsOfOne    = 64 / 4 / 2
)

// onlyEastWaits: for the API of the cluster east waits nobody else, and of its calls as many
// at once as may. It is said of each that got no answer.
func onlyEastWaits(name string, patience time.Duration) func(*findings, *world, *record) {
	return func(t *findings, w *world, rec *record) {
		othersGoOn(t, w, rec)
		said := 0
		type edge struct {
			at   time.Duration
			more int
		}
		var edges []edge
		for i := range rec.calls {
			c := &rec.calls[i]
			if c.Cluster != "east" || c.Exempt || c.Sent < rec.broken || c.Sent > rec.repaired {
				continue
			}
			if text := c.Annotations["dispatcher.dev.failed-open"]; strings.Contains(text, name+" (Evaluation") || strings.Contains(text, name+" (BadAnswer") {
				said++
			}
			if c.Done-c.Sent-c.Stall > patience*3/4 {
				edges = append(edges, edge{c.Sent, 1}, edge{c.Done, -1})
			}
		}
		slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), a.more-b.more) })
		waiting, most := 0, 0
		for _, e := range edges {
			waiting += e.more
			most = max(most, waiting)
		}
		if most > 2*lookupsOfOne { // calls wait for other things, too
			t.Errorf("%d calls of east wait at once, of which %d may", most, lookupsOfOne)
		}
		if said == 0 {
			t.Errorf("%s has always an answer, or nothing is said about that it has none", name)
		}
	}
}

// othersGoOn: the calls of other clusters take as long as before.
func othersGoOn(t *findings, _ *world, rec *record) {
	other := func(c *history.Call) bool { return c.Cluster != "east" && !c.Exempt }
	within := func(from, until time.Duration) span {
		return span{times(rec.calls, from, until, other), times(rec.direct, from, until, func(*history.Call) bool { return true })}
	}
	before, beside := within(rec.started, rec.broken), within(rec.broken, rec.repaired)
	for _, said := range beside.exceeds("beside a cluster whose API is broken", []limit{{0.9, 50 * time.Millisecond, 0.5}, {0.99, 100 * time.Millisecond, 0.5}}, 0, before) {
		t.Error(said)
	}
}

// answering is in the process as decided, and has an answer but for the fault.
func answering(name string) []history.Webhook {
	all := decided(name)
	all[0].Inside = true
	return all
}

// unanswered are the calls of east that wait for its API.
var unanswered = []excuse{{cluster: "east", causes: []history.Cause{history.Evaluation, history.BadAnswer, history.Shed}}}
