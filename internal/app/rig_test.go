// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
)

// rig is a process with a configuration made of parts, callers of several clusters
// and webhooks that a test plays.
type rig struct {
	*world
	t       *testing.T
	process *process
	over    chan struct{} // closed at the end: nobody hangs any more
	asking  sync.WaitGroup

	config   string // YAML
	clusters map[string]string
	bindings map[string]string
	hooks    []hook

	mu    sync.Mutex
	seen  []*call
	plays func(c *call)
}

// hook is one webhook. Zero values mean a validating one that fails closed.
type hook struct {
	name, policy, timeout string
	mutating              bool
	url                   string // default: the server of the rig
	more                  string // fields, in YAML flow style
}

// minimal is a configuration without anything that a row of the wiring observes.
const minimal = `apiVersion: dispatcher.dev/v1alpha1
kind: DispatcherConfiguration
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
tls: {certFile: serving.crt, keyFile: serving.key, clientCAFile: ca.crt}
sources: [{directory: registry}]
allowedNetworks: ["127.0.0.0/8"]
lameDuck: 0s
reloadInterval: 20ms
`

// newRig has the cluster east and the webhook policy, which allows.
func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{world: newWorld(t), t: t, over: make(chan struct{}), config: minimal, clusters: map[string]string{}, bindings: map[string]string{}}
	r.remove("registry/webhooks.yaml")
	r.remove("registry/cluster.yaml")
	r.cluster("east", "")
	r.register(hook{name: "policy"})
	r.plays = (*call).allow
	r.webhook.Config.Handler = http.HandlerFunc(r.serve)
	return r
}

// merged merges two documents, member by member; lists are replaced.
func merged(t testing.TB, base, more string) string {
	t.Helper()
	var a, b map[string]any
	if err := errors.Join(yaml.Unmarshal([]byte(base), &a), yaml.Unmarshal([]byte(more), &b)); err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(mergedMaps(a, b))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func mergedMaps(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]any{}
	}
	for key, value := range b {
		inner, isMap := value.(map[string]any)
		before, wasMap := all[key].(map[string]any)
		if isMap && wasMap {
			all[key] = mergedMaps(before, inner)
		} else {
			all[key] = value
		}
	}
	return all
}

// configure adds to the process's configuration.
func (r *rig) configure(more string) { r.config = merged(r.t, r.config, more) }

// cluster adds to the spec of a Cluster, whose certificate has its name unless it
// says how else it is known.
func (r *rig) cluster(name, spec string) {
	if r.clusters[name] == "" && !strings.Contains(spec, "authentication") {
		r.clusters[name] = "authentication: {certificate: {commonNames: [" + name + "]}}"
		r.issue(name, pki.Subject{CommonName: name})
	}
	if strings.Contains(spec, "authentication") {
		r.clusters[name] = ""
	}
	r.clusters[name] = merged(r.t, r.clusters[name], spec)
	r.object("Cluster", name, r.clusters[name])
}

// bind adds to the spec of the WebhookBinding of the webhook policy.
func (r *rig) bind(spec string) {
	r.bindings["policy"] = merged(r.t, `webhooks: ["policy/*"]`, spec)
	r.object("WebhookBinding", "policy", r.bindings["policy"])
}

func (r *rig) object(kind, name, spec string) {
	r.write("registry/"+kind+"-"+name+".yaml", []byte(merged(r.t, "apiVersion: dispatcher.dev/v1alpha1\nkind: "+kind+"\nmetadata: {name: "+name+", labels: {name: "+name+"}}\n",
		"spec: "+string(must(yaml.YAMLToJSON([]byte(spec)))))))
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// register replaces the webhooks.
func (r *rig) register(hooks ...hook) {
	ca, _ := json.Marshal(r.authority.PEM) // []byte marshals as base64
	for _, h := range r.hooks {
		r.remove("registry/hook-" + h.name + ".yaml")
	}
	r.hooks = hooks
	for _, h := range hooks {
		kind := "Validating"
		if h.mutating {
			kind = "Mutating"
		}
		spec := merged(r.t, fmt.Sprintf(`{name: %[1]s.example.com, clientConfig: {url: %[2]q, caBundle: %[3]s}, failurePolicy: %[4]s, sideEffects: None, timeoutSeconds: %[5]s,
  admissionReviewVersions: [v1], rules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"]}]}`,
			h.name, cmp.Or(h.url, r.webhook.URL)+"/"+h.name, ca, cmp.Or(h.policy, "Fail"), cmp.Or(h.timeout, "30")), h.more)
		r.write("registry/hook-"+h.name+".yaml", []byte(merged(r.t,
			"apiVersion: admissionregistration.k8s.io/v1\nkind: "+kind+"WebhookConfiguration\nmetadata: {name: "+h.name+"}\n",
			"webhooks: ["+string(must(yaml.YAMLToJSON([]byte(spec))))+"]")))
	}
}

// start starts the process and waits until it is ready. At the end, those that hang
// are let go before it stops.
func (r *rig) start() *rig {
	r.t.Helper()
	r.process = r.startFrom(r.config)
	r.t.Cleanup(func() { close(r.over); r.asking.Wait() })
	r.process.awaitReady()
	return r
}

// call is one attempt at a webhook of the rig.
type call struct {
	rig       *rig
	rw        http.ResponseWriter
	ctx       context.Context
	hook      string
	header    http.Header
	timeout   string // of the query
	presented string // common name of the client certificate
	uid, name string
	nth       int // of the calls of this hook about that name, from 1
}

func (r *rig) serve(rw http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	c := &call{rig: r, rw: rw, ctx: req.Context(), hook: strings.TrimPrefix(req.URL.Path, "/"), header: req.Header, timeout: req.URL.Query().Get("timeout")}
	var review struct {
		Request struct{ UID, Name string }
	}
	if json.Unmarshal(body, &review) == nil { // else in another form
		c.uid, c.name = review.Request.UID, review.Request.Name
	}
	if req.TLS != nil && len(req.TLS.PeerCertificates) > 0 {
		c.presented = req.TLS.PeerCertificates[0].Subject.CommonName
	}
	r.mu.Lock()
	c.nth = 1
	for _, before := range r.seen {
		if before.hook == c.hook && before.name == c.name {
			c.nth++
		}
	}
	r.seen = append(r.seen, c)
	play := r.plays
	r.mu.Unlock()
	play(c)
}

// play says what the webhooks do from now on.
func (r *rig) play(f func(c *call)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.plays = f
}

// calls returns the attempts so far, at one webhook.
func (r *rig) calls(hook string) (list []*call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.seen {
		if c.hook == hook {
			list = append(list, c)
		}
	}
	return list
}

// last returns the latest attempt.
func (r *rig) last() *call {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.seen) == 0 {
		r.t.Fatal("no webhook is called")
	}
	return r.seen[len(r.seen)-1]
}

// say answers with the members of a response.
func (c *call) say(members string) {
	c.rw.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(c.rw, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,%s}}`, cmp.Or(c.uid, "u-1"), members)
}

func (c *call) allow() { c.say(`"allowed":true`) }
func (c *call) deny() {
	c.say(`"allowed":false,"status":{"code":403,"message":"no, says ` + c.hook + `"}`)
}
func (c *call) fail() { c.rw.WriteHeader(http.StatusInternalServerError) }

// until waits until a channel is closed, and no longer than somebody wants to know.
func (c *call) until(done <-chan struct{}) {
	select {
	case <-done:
	case <-c.ctx.Done():
	case <-c.rig.over:
	}
}

// hang answers when nobody wants to know any more.
func (c *call) hang() { c.until(nil) }

// question is one admission. Zero values mean a pod that ann creates in the
// namespace shop of east.
type question struct {
	cluster, phase, timeout, operation, namespace, name, group, resource, user string
	groups, extra                                                              string // JSON
	size                                                                       int
	token, traceparent                                                         string
	body                                                                       []byte // as it is sent
	encoding                                                                   string
	client                                                                     *http.Client
}

func (q question) review() string {
	return fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u-1","kind":{"group":%[1]q,"version":"v1","kind":"Pod"},`+
		`"resource":{"group":%[1]q,"version":"v1","resource":%[2]q},"name":%[3]q,"namespace":%[4]q,"operation":%[5]q,"userInfo":{"username":%[6]q,"groups":%[7]s,"extra":%[8]s},`+
		`"object":{"metadata":{"name":%[3]q},"data":%[9]q}}}`,
		q.group, cmp.Or(q.resource, "pods"), cmp.Or(q.name, "p"), cmp.Or(q.namespace, "shop"), cmp.Or(q.operation, "CREATE"), cmp.Or(q.user, "ann"),
		cmp.Or(q.groups, "[]"), cmp.Or(q.extra, "{}"), strings.Repeat("x", q.size))
}

// reply is what a caller gets.
type reply struct {
	status  int
	close   bool // the connection is closed with it
	allowed bool
	text    string
	err     error
}

// clientAs returns a client with a certificate of a name, or none.
func (r *rig) clientAs(name string) *http.Client {
	r.t.Helper()
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: r.authority.Pool(), NextProtos: []string{"http/1.1"}}
	if name != "" {
		cfg.Certificates = []tls.Certificate{must(tls.LoadX509KeyPair(filepath.Join(r.dir, name+".crt"), filepath.Join(r.dir, name+".key")))}
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 100, TLSClientConfig: cfg}
	r.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// ask sends a review and returns the answer.
func (r *rig) ask(q question) reply {
	r.t.Helper()
	if q.client == nil {
		q.client = r.clientAs(cmp.Or(q.cluster, "east"))
		defer q.client.CloseIdleConnections()
	}
	body := q.body
	if body == nil {
		body = []byte(q.review())
	}
	url := "https://" + r.process.app.Address().String() + "/v1/clusters/" + cmp.Or(q.cluster, "east") + "/" + cmp.Or(q.phase, "validate")
	if q.timeout != "none" {
		url += "?timeout=" + cmp.Or(q.timeout, "30s")
	}
	req := must(http.NewRequestWithContext(context.Background(), http.MethodPost, url, strings.NewReader(string(body))))
	req.Header.Set("Content-Type", "application/json")
	if q.encoding != "" {
		req.Header.Set("Content-Encoding", q.encoding)
	}
	if q.traceparent != "" {
		req.Header.Set("Traceparent", q.traceparent)
	}
	if q.token != "" {
		req.Header.Set("Authorization", "Bearer "+q.token)
	}
	resp, err := q.client.Do(req)
	if err != nil {
		return reply{err: err}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	var got struct{ Response struct{ Allowed bool } }
	_ = json.Unmarshal(text, &got) // an HTTP error is no review
	return reply{resp.StatusCode, resp.Close, got.Response.Allowed, string(text), err}
}

// asks is ask, of which the answer comes later.
func (r *rig) asks(q question) <-chan reply {
	answer := make(chan reply, 1)
	r.asking.Go(func() { answer <- r.ask(q) })
	return answer
}

// allows fails the test unless the admission is allowed with such words.
func (r *rig) allows(q question, words ...string) reply {
	r.t.Helper()
	return r.answers(q, true, words)
}

// denies fails the test unless the admission is denied with such words.
func (r *rig) denies(q question, words ...string) reply {
	r.t.Helper()
	return r.answers(q, false, words)
}

func (r *rig) answers(q question, allowed bool, words []string) reply {
	r.t.Helper()
	got := r.ask(q)
	if got.err != nil || got.status != http.StatusOK || got.allowed != allowed {
		r.t.Errorf("HTTP status %d, allowed is %t, %v: %s", got.status, got.allowed, got.err, got.text)
	}
	for _, word := range words {
		if !strings.Contains(got.text, word) {
			r.t.Errorf("no %q in %s", word, got.text)
		}
	}
	return got
}

// round is an admission that follows many quick ones, and that webhooks answer only
// when the hook named awaited is asked a second time, or after hold.
type round struct {
	reply
	attempts map[string]int // by hook
	hedged   bool           // the hedge came, and was answered first
}

// rounds repeats rounds until enough. How long an answer usually takes is not known at
// first, and a busy machine hedges late: hold is longer each time. answer gives the
// first answers, and the hedge's.
func (r *rig) rounds(awaited string, next func(round int) question, answer func(c *call, hedged bool), enough func(round) bool) {
	r.t.Helper()
	client, number := r.clientAs("east"), 0
	r.eventually("calls are hedged", func() bool {
		r.play((*call).allow)
		for range 25 {
			r.allows(question{client: client})
		}
		number++
		hold := 25 * time.Millisecond << number
		q := next(number)
		q.client, q.name = client, fmt.Sprint("round-", number)
		hedged, gaveUp := make(chan struct{}), atomic.Bool{}
		r.play(func(c *call) {
			if c.hook == awaited && c.name == q.name && c.nth == 2 {
				answer(c, true)
				_ = http.NewResponseController(c.rw).Flush()
				close(hedged)
				return
			}
			select {
			case <-hedged:
				answer(c, false)
			case <-time.After(hold):
				gaveUp.Store(true)
				c.allow()
			}
		})
		got := round{reply: r.ask(q), attempts: map[string]int{}}
		for _, h := range r.hooks {
			for _, c := range r.calls(h.name) {
				if c.name == q.name {
					got.attempts[h.name]++
				}
			}
		}
		got.hedged = got.attempts[awaited] > 1 && !gaveUp.Load()
		return enough(got)
	})
}

// eventually waits until ok.
func (r *rig) eventually(what string, ok func() bool) {
	r.t.Helper()
	eventually(r.t, what, ok)
}

// within fails the test unless do takes less than the default of the field.
func (r *rig) within(byDefault time.Duration, do func()) {
	r.t.Helper()
	begin := time.Now()
	do()
	if took := time.Since(begin); took >= byDefault {
		r.t.Errorf("%v, as with the default of %v", took, byDefault)
	}
}

// admin asks the admin listener.
func (r *rig) admin(path string) (status int, body string) {
	r.t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(r.process.app.AdminURL() + path) //nolint:noctx // bounded by the test
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// another starts a second server for the rig's webhooks, with a certificate of
// another authority, and asks who calls.
func (r *rig) another(authority *pki.Authority, s pki.Subject) (address string) {
	r.t.Helper()
	server := r.newWebhook(authority, s, r.serve)
	server.TLS.ClientAuth = tls.RequestClientCert
	server.StartTLS()
	return server.Listener.Addr().String()
}

// dial connects to the process without TLS.
func (r *rig) dial() net.Conn {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.process.app.Address().String())
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		r.t.Fatal(err)
	}
	return conn
}

// closings dials so often, and counts the connections that the process closes.
func (r *rig) closings(dials int) *atomic.Int64 {
	r.t.Helper()
	closed := new(atomic.Int64)
	for range dials {
		conn := r.dial()
		r.asking.Go(func() {
			if _, err := conn.Read(make([]byte, 1)); !os.IsTimeout(err) {
				closed.Add(1)
			}
		})
	}
	return closed
}

// dialAs connects with a certificate of a name.
func (r *rig) dialAs(name string) net.Conn {
	r.t.Helper()
	certificate := must(tls.LoadX509KeyPair(filepath.Join(r.dir, name+".crt"), filepath.Join(r.dir, name+".key")))
	conn := tls.Client(r.dial(), &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: r.authority.Pool(), ServerName: "127.0.0.1", Certificates: []tls.Certificate{certificate}})
	if err := conn.HandshakeContext(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	return conn
}
