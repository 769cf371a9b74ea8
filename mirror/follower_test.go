// SPDX-License-Identifier: Apache-2.0

package mirror_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/admission-dispatcher/dispatcher/mirror"
)

// A follower says what it decides, and a status that is written is no reason to
// decide anew.
func TestFollower(t *testing.T) {
	api := newAPI(t)
	api.apply(cluster("a", "a"))
	config := &rest.Config{Host: api.server.URL, QPS: -1}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	dynamically, err := dynamic.NewForConfigAndClient(config, client)
	if err != nil {
		t.Fatal(err)
	}
	decisions := make(chan *mirror.Decision, 100)
	f := mirror.NewFollower(mirror.Settings{Client: dynamically, Namespace: "registry", Directory: t.TempDir(), Quiet: time.Millisecond, Late: time.Millisecond},
		func(d *mirror.Decision) { decisions <- d })
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := f.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	defer func() { cancel(); running.Wait(); client.CloseIdleConnections() }()
	next := func(objects int) *mirror.Decision {
		t.Helper()
		select {
		case d := <-decisions:
			if len(d.Objects) != objects {
				t.Fatalf("a decision of %d objects, want %d", len(d.Objects), objects)
			}
			return d
		case <-time.After(patience):
			t.Fatalf("no decision within %v", patience)
			return nil
		}
	}
	first := next(1)
	if o := first.Objects[0]; o.Key != "Cluster/a" || o.Refused != nil || o.Version == "" || o.Version != o.Served || first.Clusters["a"] == nil {
		t.Errorf("%+v", first)
	}
	for range 20 {
		api.apply(cluster("a", "a") + "\nstatus: {conditions: [{type: Accepted, status: \"True\"}]}")
	}
	for deadline := time.Now().Add(patience); ; <-time.After(time.Millisecond) {
		if status, _, ok := f.Status("Cluster/a"); ok && len(status) > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the status is not seen")
		}
	}
	api.apply(cluster("b", "b"))
	if second := next(2); second.Generation == first.Generation {
		t.Error("another generation has the same name")
	}
}
