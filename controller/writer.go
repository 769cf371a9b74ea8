// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
	"github.com/admission-dispatcher/dispatcher/mirror"
)

// The bounds of writing.
const (
	writeTimeout = 5 * time.Second
	// firstWait is how long nothing is written again of one object when a write has
	// failed, or its effect is not seen. It doubles up to lastWait.
	firstWait = 5 * time.Second
	lastWait  = 10 * time.Minute
)

// plurals are the resources of our kinds.
var plurals = map[string]string{
	"Cluster": "clusters", "WebhookBinding": "webhookbindings", "WebhookConfiguration": "webhookconfigurations",
	"Plugin": "plugins", registryKind: "registries",
}

const registryKind = "Registry"

// write is a status that an object should have.
type write struct {
	key    string // Kind/name
	sum    string // of what it says, without times
	status any
}

// writer writes statuses, one after the other at a bounded rate. What fails, or comes to
// nothing, is tried again ever more rarely.
type writer struct {
	api   dynamic.Interface
	every time.Duration
	log   *slog.Logger

	mu       sync.Mutex
	queue    []write
	attempts map[string]attempt // by key
}

// attempt is what was written last of an object.
type attempt struct {
	sum  string
	next time.Time // when the same may be written again
	wait time.Duration
}

func newWriter(api dynamic.Interface, every time.Duration, log *slog.Logger) *writer {
	return &writer{api: api, every: every, log: log, attempts: map[string]attempt{}}
}

// want replaces what is to be written: all objects that do not have the status that they
// should have, those first that matter most. The others need nothing any more.
func (w *writer) want(list []write) {
	wanted := make(map[string]bool, len(list))
	for i := range list {
		wanted[list[i].key] = true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = list
	for key := range w.attempts {
		if !wanted[key] {
			delete(w.attempts, key)
		}
	}
}

// run writes until ctx is done.
func (w *writer) run(ctx context.Context) {
	ticker := time.NewTicker(w.every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			if next, ok := w.next(now); ok {
				w.wrote(next, w.write(ctx, next))
			}
		}
	}
}

// next takes the first write of the queue that may be made now.
func (w *writer) next(now time.Time) (write, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.queue) > 0 {
		first := w.queue[0]
		w.queue = w.queue[1:]
		a, tried := w.attempts[first.key]
		if tried && now.Before(a.next) && (a.sum == first.sum || a.wait > firstWait) {
			continue // it comes again with the next want
		}
		return first, true
	}
	return write{}, false
}

// wrote notes what came of a write.
func (w *writer) wrote(written write, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.attempts[written.key]
	switch {
	case err == nil && a.sum != written.sum:
		a.wait = firstWait
	default:
		a.wait = min(max(2*a.wait, firstWait), lastWait)
	}
	a.sum, a.next = written.sum, time.Now().Add(a.wait)
	w.attempts[written.key] = a
	if err != nil && !apierrors.IsNotFound(err) {
		w.log.Warn("status cannot be written", "object", written.key, "error", oneLine(err.Error(), maxWords), "again", a.wait.String())
	}
}

var errNoKind = errors.New("it is of no kind of ours")

func (w *writer) write(ctx context.Context, what write) error {
	kind := mirror.KindOf(what.key)
	plural, ok := plurals[kind]
	if !ok {
		return errNoKind
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.Group + "/" + v1alpha1.Version, "kind": kind,
		"metadata": map[string]any{"name": what.key[len(kind)+1:]}, "status": what.status,
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	force := true
	_, err = w.api.Resource(schema.GroupVersionResource{Group: v1alpha1.Group, Version: v1alpha1.Version, Resource: plural}).
		Patch(ctx, what.key[len(kind)+1:], types.ApplyPatchType, text, metav1.PatchOptions{FieldManager: fieldManager, Force: &force}, "status")
	return err
}

// createRegistry creates the Registry, which says what is of all objects together.
func (w *writer) createRegistry(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.Group + "/" + v1alpha1.Version, "kind": registryKind, "metadata": map[string]any{"name": v1alpha1.RegistryName},
	}}
	_, err := w.api.Resource(schema.GroupVersionResource{Group: v1alpha1.Group, Version: v1alpha1.Version, Resource: plurals[registryKind]}).
		Create(ctx, o, metav1.CreateOptions{FieldManager: fieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		w.log.Warn("the Registry cannot be created", "error", oneLine(err.Error(), maxWords))
	}
}
