// SPDX-License-Identifier: Apache-2.0

package decisionlog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/decisionlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// collected is a sink for a decision log; read it after Close.
type collected struct{ bytes.Buffer }

func (*collected) Close() error { return nil }

// allowed is a verdict to which one webhook contributed.
func allowed() dispatcher.Verdict {
	asked := &chain.Entry{ID: hook.ID{Configuration: "policies", Name: "w.example.com"}}
	return dispatcher.Verdict{
		Response: codec.Response{Allowed: true},
		Outcomes: []dispatcher.Outcome{{Webhook: asked, Result: dispatcher.Allowed, Elapsed: time.Millisecond}},
	}
}

// decidedIn is an admission of a cluster with this Verdict.
func decidedIn(cluster string, v dispatcher.Verdict) *dispatcher.Record {
	return &dispatcher.Record{
		Request: dispatcher.Request{Cluster: &chain.Cluster{Name: cluster}, Phase: chain.Validating, Snapshot: "one", Deadline: time.Now().Add(time.Second), Review: &codec.Review{}},
		Verdict: &v, Start: time.Now(), Elapsed: time.Millisecond,
	}
}

// decide has one admission of the object written and returns the line.
func decide(t *testing.T, cfg decisionlog.Config, resource, object string) string {
	t.Helper()
	out := &collected{}
	cfg.Out = out
	l, err := decisionlog.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := decidedIn("east", allowed())
	r.Review = reviewOf(t, resource, object)
	l.Observe(context.Background(), r)
	l.Close()
	return out.String()
}

func reviewOf(t *testing.T, resource, object string) *codec.Review {
	t.Helper()
	text := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u-1",` +
		`"kind":{"group":"","version":"v1","kind":"Thing"},"resource":{"group":"","version":"v1","resource":"` + resource + `"},` +
		`"name":"p","namespace":"shop","operation":"CREATE","userInfo":{"username":"a\nb\u001b[31m\u2028c"},"object":` + object + `}}`
	review := new(codec.Review)
	if err := review.Decode(codec.NewBody([]byte(text), nil)); err != nil {
		t.Fatal(err)
	}
	return review
}

func TestDecisionLogHasOneLinePerDecision(t *testing.T) {
	line := decide(t, decisionlog.Config{Allows: true}, "pods", `{"metadata":{"name":"p"},"spec":{"secret":"hidden"}}`)
	if strings.Count(line, "\n") != 1 || strings.ContainsAny(line, "\x1b\u2028") || strings.Contains(line, "hidden") {
		t.Errorf("the line is %q", line)
	}
	var d decisionlog.Line
	if err := json.Unmarshal([]byte(line), &d); err != nil {
		t.Fatal(err)
	}
	if d.Request.UserInfo.Username != "a\nb\x1b[31m\u2028c" || d.Decision != "allowed" || len(d.Webhooks) != 1 || d.Webhooks[0].Outcome != "allowed" {
		t.Errorf("the line says %+v", d)
	}
}

func TestDecisionLogWithoutAllows(t *testing.T) {
	if line := decide(t, decisionlog.Config{}, "pods", `{}`); line != "" {
		t.Errorf("the line is %q", line)
	}
}

func TestDecisionLogMasks(t *testing.T) {
	const secret = `{"kind":"Secret","metadata":{"name":"p","annotations":{"last":"hidden"}},"data":{"a":"hidden"},"stringData":{"b":"hidden"},"type":"Opaque"}`
	const configMap = `{"kind":"ConfigMap","metadata":{"annotations":{"example.com/token":"hidden","example.com/other":"seen"}},"data":{"app.yaml":"hidden","b":"c"}}`
	const pod = `{"kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","env":[{"name":"a","value":"hidden"}]},{"env":"hidden"}],"x":{"y":{"z":"hidden","w":"seen"}}}}`
	for name, test := range map[string]struct {
		resource, object, shown string
		mask                    []string
	}{
		"a Secret":            {"secrets", secret, `"type":"Opaque"`, nil},
		"a Secret elsewhere":  {"things", secret, `"type":"Opaque"`, nil},
		"a Secret by its URL": {"secrets", strings.Replace(secret, `"kind":"Secret",`, "", 1), `"type":"Opaque"`, nil},
		"paths":               {"pods", pod, `"w":"seen"`, []string{"spec.containers.env", "spec.*.y.z"}},
		"names with dots":     {"configmaps", configMap, `"example.com/other":"seen"`, []string{`metadata.annotations["example.com/token"]`, `data['app.yaml']`}},
	} {
		t.Run(name, func(t *testing.T) {
			line := decide(t, decisionlog.Config{Allows: true, Objects: true, Mask: test.mask}, test.resource, test.object)
			if strings.Contains(line, "hidden") || !strings.Contains(line, test.shown) {
				t.Errorf("the line is %s", line)
			}
		})
	}
}

func TestDecisionLogRefusesAMask(t *testing.T) {
	if l, err := decisionlog.New(decisionlog.Config{Mask: []string{"a..b"}}); err == nil || l != nil {
		t.Errorf("%v, %v", l, err)
	}
}

// blockedSink takes nothing before it is closed.
type blockedSink struct {
	io.WriteCloser
	release chan struct{}
}

func (s blockedSink) Write(line []byte) (int, error) {
	<-s.release
	return len(line), nil
}

func (s blockedSink) Close() error { return nil }

// F31: a sink that takes nothing holds up nobody, and what is lost is counted.
func TestDecisionLogNeverBlocks(t *testing.T) {
	sink := blockedSink{release: make(chan struct{})}
	l, err := decisionlog.New(decisionlog.Config{Out: sink, Allows: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 5000 {
		l.Observe(context.Background(), decidedIn("east", allowed()))
	}
	n := l.Dropped()
	if n < 5000-2048-1 || n > 5000-2048 {
		t.Errorf("%d dropped, where one cluster has half of the queue", n)
	}
	for range 1000 {
		l.Observe(context.Background(), decidedIn("west", allowed()))
	}
	if more := l.Dropped() - n; more != 0 {
		t.Errorf("%d of another cluster dropped", more)
	}
	close(sink.release)
	l.Close()
}

// Of a review that cannot be judged it is not known whether it is about a Secret.
func TestDecisionLogHasNoUnreadableObject(t *testing.T) {
	out := &collected{}
	l, err := decisionlog.New(decisionlog.Config{Out: out, Objects: true})
	if err != nil {
		t.Fatal(err)
	}
	r := decidedIn("east", dispatcher.Verdict{Unreadable: true})
	r.Review.Object.Raw = []byte(`{"kind":"Secret","data":{"password":"swordfish"}}`)
	l.Observe(context.Background(), r)
	l.Close()
	if line := out.String(); strings.Contains(line, "swordfish") || !strings.Contains(line, `"decision":"unreadable"`) {
		t.Errorf("the line is %s", line)
	}
}

func TestFileRotates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d")
	f, err := decisionlog.OpenFile(path, 10, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"1111\n", "2222\n", "3333\n", "4444\n", "5555\n", "6666\n", "7777\n"} {
		if _, err := f.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"": "7777\n", ".1": "5555\n6666\n", ".2": "3333\n4444\n", ".3": ""} {
		if got, _ := os.ReadFile(path + name); string(got) != want {
			t.Errorf("%q has %q, want %q", name, got, want)
		}
	}
}
