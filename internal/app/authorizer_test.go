// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/plugin"
)

// authorizing is a plugin that denies what the cluster's authorizer does not allow.
type authorizing struct{}

func (authorizing) Validate(_ context.Context, a *plugin.Attributes) (plugin.Answer, error) {
	status, err := a.Authorize(&authorizationv1.SubjectAccessReviewSpec{
		User: "ann", ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "create", Resource: "pods"},
	})
	if err != nil || status.Allowed {
		return plugin.Answer{}, err
	}
	return a.Forbid("the authorizer says no"), nil
}

// authority is the API of a cluster that is asked who may do what.
type authority struct {
	*httptest.Server
	hangs        atomic.Bool
	asked, most  atomic.Int64
	under        atomic.Int64
	resourceless atomic.Int64 // questions that are not as they should be
}

func (a *authority) serve(rw http.ResponseWriter, r *http.Request) {
	rw.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path == "/apis/authorization.k8s.io/v1/subjectaccessreviews" && r.Method == http.MethodPost:
		a.review(rw, r)
	case r.URL.Query().Get("watch") != "":
		_ = http.NewResponseController(rw).Flush()
		<-r.Context().Done()
	default:
		_, _ = io.WriteString(rw, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"1"},"items":[]}`)
	}
}

func (a *authority) review(rw http.ResponseWriter, r *http.Request) {
	var review authorizationv1.SubjectAccessReview
	if json.NewDecoder(r.Body).Decode(&review) != nil || review.Spec.User != "ann" || review.Spec.ResourceAttributes == nil {
		a.resourceless.Add(1)
		return
	}
	a.asked.Add(1)
	if now := a.under.Add(1); now > a.most.Load() {
		a.most.Store(now)
	}
	defer a.under.Add(-1)
	if a.hangs.Load() {
		<-r.Context().Done()
		return
	}
	review.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: !strings.HasPrefix(review.Spec.ResourceAttributes.Name, "bad"), Reason: "by the book"}
	rw.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(rw).Encode(review)
}

// startAuthority starts the API of a cluster, and names it in the cluster's manifest.
func (w *world) startAuthority(cluster string) *authority {
	a := &authority{}
	a.Server = httptest.NewUnstartedServer(http.HandlerFunc(a.serve))
	a.Config.ErrorLog = log.New(io.Discard, "", 0)
	a.EnableHTTP2 = true
	a.StartTLS()
	w.t.Cleanup(func() { a.CloseClientConnections(); a.Close() })
	ca, _ := json.Marshal(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Certificate().Raw}))
	w.write("registry/"+cluster+".kubeconfig", fmt.Appendf(nil, `current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: a, user: {token: abc}}]
`, a.URL, ca))
	w.write("registry/cluster-"+cluster+".yaml", fmt.Appendf(nil, "apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: %[1]s}\n"+
		"spec: {authentication: {certificate: {commonNames: [%[1]s]}}, kubeconfigFile: %[1]s.kubeconfig}\n", cluster))
	return a
}

// newAuthorities starts a dispatcher for two clusters with APIs. What decides about pods in
// a namespace is what it is called after: a policy, the condition of a webhook that
// denies, or a plugin.
func newAuthorities(t *testing.T, more string) (n *neighbourhood, p *process, east, west *authority) {
	t.Helper()
	w := newWorld(t)
	w.remove("registry/cluster.yaml")
	n = &neighbourhood{world: w, t: t, clients: map[string]*http.Client{}}
	w.issue("west", pki.Subject{CommonName: "west"})
	east, west = w.startAuthority("east"), w.startAuthority("west")
	w.says(`"allowed":false,"status":{"message":"no says the webhook"}`)
	w.configureMore("conditional", `  matchConditions:
  - {name: where, expression: "request.namespace == 'condition'"}
  - {name: may-not, expression: "request.namespace != 'condition' || !authorizer.requestResource.check('skip').allowed()"}
`)
	w.write("registry/policies.yaml", []byte(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: policy}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  matchConditions: [{name: where, expression: "request.namespace == 'policy'"}]
  variables: [{name: check, expression: "authorizer.requestResource.check('skip')"}]
  validations:
  - {expression: "has(object.metadata) && variables.check.allowed()", message: "may not"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: binding}
spec: {policyName: policy, validationActions: [Deny]}
---
apiVersion: dispatcher.dev/v1alpha1
kind: Plugin
metadata: {name: authorizing}
spec: {plugin: Authorizing, phases: [Validating], matchConditions: [{name: where, expression: "request.namespace == 'plugin'"}]}
`))
	p = w.start("lameDuck: 0s\nlog: {level: error}\n" + more)
	n.address = p.awaitReady()
	for _, cluster := range []string{"east", "west"} {
		n.clients[cluster] = n.clientAs(cluster)
	}
	return n, p, east, west
}

// J1 Whether a user may do something is asked of the cluster that calls, once: by a policy,
// by a matchCondition, and by a plugin.
func TestJ1AuthorizerOfTheCluster(t *testing.T) {
	n, p, east, west := newAuthorities(t, "")
	for _, row := range []struct {
		namespace, name string
		allowed         bool
		says            string
	}{
		{"policy", "good", true, ""},
		{"policy", "bad", false, "may not"},
		{"condition", "good", true, ""},
		{"condition", "bad", false, "no says the webhook"},
		{"plugin", "good", true, ""},
		{"elsewhere", "bad", true, ""},
	} {
		for range 2 {
			if allowed, text := n.ask(admission{cluster: "east", namespace: row.namespace, name: row.name}); allowed != row.allowed || !strings.Contains(text, row.says) {
				t.Errorf("%s of %s: %s", row.name, row.namespace, text)
			}
		}
	}
	if east.asked.Load() != 5 || west.asked.Load() != 0 || east.resourceless.Load() != 0 {
		t.Errorf("east is asked %d times, west %d times, %d times for nothing", east.asked.Load(), west.asked.Load(), east.resourceless.Load())
	}
	for _, series := range []string{
		`dispatcher_access_reviews_total{cluster="east",result="allowed"} 3.0`, `dispatcher_access_reviews_total{cluster="east",result="denied"} 2.0`,
		`dispatcher_access_reviews_total{cluster="east",result="cached"} 5.0`, `dispatcher_access_review_duration_seconds_count{result="allowed"} 3`,
	} {
		if text := p.scrape(); !strings.Contains(text, series) {
			t.Errorf("%s is missing in\n%s", series, text)
		}
	}
	s, err := p.status(http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range s.Clusters {
		if c.Authorizer == nil || c.Name == "east" && (c.Authorizer.Answered != 5 || c.Authorizer.Cached != 5) {
			t.Errorf("%s: %+v", c.Name, c.Authorizer)
		}
	}
}

// J5 East's API hangs over every question, and east asks as many as it can think of, about
// large objects, too. Each has an answer in time, which is no allow; how much waits is
// bounded; and west is decided as ever, by policy, condition and plugin.
func TestJ5AuthorizerThatHangsHarmsNoOther(t *testing.T) {
	n, p, east, west := newAuthorities(t, "limits: {admissions: 256}\n")
	east.hangs.Store(true)
	before := runtime.NumGoroutine()
	var allowed, denied atomic.Int64
	kinds := []string{"policy", "condition", "plugin"}
	end := n.stormOf(200, func(i int) admission {
		a := admission{cluster: "east", namespace: kinds[i%3], name: fmt.Sprint("good", i), timeout: "2s"}
		if i%8 == 0 {
			a.size = 100_000
		}
		return a
	}, func(ok bool, text string) {
		if ok {
			allowed.Add(1)
		} else if text != "" {
			denied.Add(1)
		}
	})
	eventually(t, "east asks as much as it may", func() bool { return east.most.Load() >= 16 && denied.Load() > 100 })
	for i := range 20 {
		for _, kind := range kinds {
			a := admission{cluster: "west", namespace: kind, name: fmt.Sprint("good", i)}
			if i%4 == 0 {
				a.size = 100_000
			}
			if ok, text := n.ask(a); !ok {
				t.Errorf("west, %s: %s", kind, text)
			}
		}
	}
	if ok, text := n.ask(admission{cluster: "west", namespace: "policy", name: "bad"}); ok || !strings.Contains(text, "may not") {
		t.Errorf("west: %s", text)
	}
	if most := runtime.NumGoroutine() - before; most > 2000 {
		t.Errorf("%d goroutines more", most)
	}
	eventually(t, "what failed is counted", func() bool {
		return strings.Contains(p.scrape(), `dispatcher_access_reviews_total{cluster="east",result="failed"}`)
	})
	end()
	// The API may see the end of a request a little later.
	if allowed.Load() > 0 || east.most.Load() > 64 || west.asked.Load() != 42 {
		t.Errorf("east: %d are allowed, and %d questions were under way at once; west asked %d", allowed.Load(), east.most.Load(), west.asked.Load())
	}
}
