// SPDX-License-Identifier: Apache-2.0

package dispatcher_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"go.uber.org/goleak"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/plugin"
	"github.com/admission-dispatcher/dispatcher/plugin/kubernetes"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

var update = flag.Bool("update", false, "rewrite the want sections of the stories")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestStories plays each file of testdata/story: a registry, scripted webhooks,
// one review, and what comes of it. Time is virtual. See testdata/story/README.md.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/story/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			story := readStory(t, file)
			got := story.play(t, 0)
			if other := story.play(t, 10*time.Millisecond); other != got {
				t.Errorf("where admissions wait for answers themselves (-by themselves +awaited):\n%s", cmp.Diff(got, other))
			}
			if *update {
				story.rewrite(t, got)
				return
			}
			if diff := cmp.Diff(story.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		})
	}
}

// compiledIn are the plugins of stories: those of kube-apiserver.
func compiledIn(t *testing.T) plugin.Set {
	t.Helper()
	set, err := plugin.NewSet(kubernetes.Plugins()...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// story is one txtar file.
type story struct {
	file    string
	archive *txtar.Archive
	request request
	review  []byte
	scripts map[string]script // by webhook name, then by name#2 for a second call
	want    string
}

// defaultCluster is registry/cluster.yaml unless a story has its own.
const defaultCluster = `
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: east, labels: {region: east}}
spec: {authentication: {anonymous: true}}
`

// podReview creates the pod of a story's pod section.
const podReview = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u-1",` +
	`"kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},` +
	`"requestKind":{"group":"","version":"v1","kind":"Pod"},"requestResource":{"group":"","version":"v1","resource":"pods"},` +
	`"name":"web","namespace":"shop","operation":"CREATE","userInfo":{"username":"ann","groups":["dev"]},` +
	`"object":%s,"oldObject":null,"dryRun":false,"options":{"apiVersion":"meta.k8s.io/v1","kind":"CreateOptions"}}}`

// request is how the caller asks: -- request -- of a story.
type request struct {
	Cluster string        `json:"cluster"`
	Phase   string        `json:"phase"`
	Timeout time.Duration `json:"-"`
	T       string        `json:"t"`    // the deadline T, 10s unless said
	Shed    bool          `json:"shed"` // there is no room for the review
	Path    string        `json:"path"` // the segment that is called
}

func readStory(t *testing.T, file string) *story {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := &story{file: file, archive: archive, scripts: map[string]script{}, request: request{Cluster: "east", Phase: "validate", T: "10s"}}
	for _, f := range archive.Files {
		switch {
		case f.Name == "request":
			if err := json.Unmarshal(f.Data, &s.request); err != nil {
				t.Fatalf("%s: request: %v", file, err)
			}
		case f.Name == "review":
			s.review = bytes.TrimSpace(f.Data)
		case f.Name == "want":
			s.want = string(f.Data)
		case strings.HasPrefix(f.Name, "webhook/"):
			s.scripts[strings.TrimPrefix(f.Name, "webhook/")] = parseScript(t, f.Name, string(f.Data))
		case f.Name == "pod":
			s.review = []byte(fmt.Sprintf(podReview, bytes.TrimSpace(f.Data)))
		case strings.HasPrefix(f.Name, "registry/"):
		default:
			t.Fatalf("%s: section %q means nothing", file, f.Name)
		}
	}
	if s.request.Timeout, err = time.ParseDuration(s.request.T); err != nil {
		t.Fatalf("%s: t: %v", file, err)
	}
	return s
}

// play returns what the story comes to. patience is how long an admission waits for an
// answer itself; 0: it does not.
func (s *story) play(t *testing.T, patience time.Duration) string {
	caller := &scriptedCaller{scripts: s.scripts, patience: patience}
	snapshot := s.load(t, caller)
	var got string
	synctest.Test(t, func(t *testing.T) {
		caller.t = t
		cfg := dispatcher.Config{Grace: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)}
		if s.request.Shed {
			cfg.Limits.Bytes = 1
		}
		d, err := dispatcher.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		review := codec.AcquireReview()
		defer codec.ReleaseReview(review)
		body := codec.NewBody(bytes.Clone(s.review), scribble)
		if err := review.Decode(body); err != nil {
			t.Fatalf("%s: review: %v", s.file, err)
		}
		body.Release()
		begin := time.Now()
		cluster, phase := snapshot.Clusters[s.request.Cluster], phaseOf(s.request.Phase)
		path, _ := cluster.Chain(phase).Path([]byte(s.request.Path))
		var v dispatcher.Verdict
		d.Dispatch(context.Background(), dispatcher.Request{
			Review:   review,
			Cluster:  cluster,
			Phase:    phase,
			Path:     path,
			Snapshot: "snapshot",
			Deadline: begin.Add(s.request.Timeout),
		}, &v)
		elapsed := time.Since(begin)
		if left := d.InFlight(); len(left) > 0 {
			t.Errorf("slots are taken after the answer: %v", left)
		}
		d.Wait()
		if s.request.Phase == chain.Validating.String() || s.hasShadow() {
			slices.Sort(caller.calls) // they are made at once
		}
		got = render(&v, caller.calls, elapsed)
	})
	return got
}

func (s *story) hasShadow() bool {
	return slices.ContainsFunc(s.archive.Files, func(f txtar.File) bool { return bytes.Contains(f.Data, []byte("mode: Shadow")) })
}

// scribble destroys the bytes of a Body that nobody should read any more.
func scribble(data []byte) {
	for i := range data {
		data[i] = '!'
	}
}

// load compiles the story's registry/ sections.
func (s *story) load(t *testing.T, caller webhook.Client) *registry.Snapshot {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cluster.yaml"), []byte(defaultCluster), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, f := range s.archive.Files {
		name, ok := strings.CutPrefix(f.Name, "registry/")
		if !ok {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	workers := hook.NewWorkers(1)
	defer workers.Close()
	r := registry.New(registry.Settings{Sources: manifest.Directories(dir), Compile: compile.Options{Client: caller, Plugins: compiledIn(t), Workers: workers}, Logger: slog.New(slog.DiscardHandler)})
	if problems := r.Load(); len(problems) > 0 {
		t.Fatalf("%s: %v", s.file, problems)
	}
	snapshot := r.Snapshot()
	if snapshot.Clusters[s.request.Cluster] == nil {
		t.Fatalf("%s: there is no cluster %q", s.file, s.request.Cluster)
	}
	return snapshot
}

func phaseOf(s string) chain.Phase {
	if s == chain.Mutating.String() {
		return chain.Mutating
	}
	return chain.Validating
}

// rewrite replaces the want section by got.
func (s *story) rewrite(t *testing.T, got string) {
	t.Helper()
	files := s.archive.Files[:0]
	for _, f := range s.archive.Files {
		if f.Name != "want" {
			files = append(files, f)
		}
	}
	s.archive.Files = append(files, txtar.File{Name: "want", Data: []byte(got)})
	if err := os.WriteFile(s.file, txtar.Format(s.archive), 0o600); err != nil {
		t.Fatal(err)
	}
}

// render writes a Verdict the way a story wants it: a line per fact.
func render(v *dispatcher.Verdict, calls []string, elapsed time.Duration) string {
	var b strings.Builder
	r := &v.Response
	fmt.Fprintf(&b, "allowed %v after %v\n", r.Allowed, elapsed)
	if !r.Allowed {
		fmt.Fprintf(&b, "code %d reason %q\n", r.Code, r.Reason)
		for line := range strings.Lines(r.Message) {
			fmt.Fprintf(&b, "message %s\n", strings.TrimSuffix(line, "\n"))
		}
		for _, c := range r.Causes {
			fmt.Fprintf(&b, "cause %s %s\n", c.Type, c.Field)
		}
		switch {
		case r.RetryAfterSeconds >= 1 && r.RetryAfterSeconds <= 3 && len(r.Causes) > 0 && r.Causes[0].Type == string(hook.Shed):
			fmt.Fprintf(&b, "retryAfterSeconds 1 to 3\n") // drawn, so that not all come back at once
		case r.RetryAfterSeconds != 0:
			fmt.Fprintf(&b, "retryAfterSeconds %d\n", r.RetryAfterSeconds)
		}
	}
	if r.Patch != nil {
		fmt.Fprintf(&b, "patch %s\n", r.Patch)
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "warning %s\n", w)
	}
	for _, a := range r.Annotations {
		fmt.Fprintf(&b, "annotation %s: %s\n", a.Key, a.Value)
	}
	for _, o := range v.Outcomes {
		fmt.Fprintf(&b, "outcome %s round %d: %s %s\n", o.Webhook.Name, o.Round, o.Result, o.Cause)
	}
	for _, c := range calls {
		fmt.Fprintf(&b, "call %s\n", c)
	}
	return b.String()
}
