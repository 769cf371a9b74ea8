// SPDX-License-Identifier: Apache-2.0

package mirror_test

import (
	"testing"

	"github.com/admission-dispatcher/dispatcher/mirror"
)

// While nothing changes bookmarks say that the API is there. What is served has been since
// it was swapped in, also for a mirror that was restarted.
func TestHeard(t *testing.T) {
	r := newRig(t)
	r.api.apply(cluster("prod", "prod"))
	r.start()
	first := r.until("it is served and the API was heard", func(s mirror.Status) bool { return s.Generation != "" && !s.Heard.IsZero() && s.Next == nil })
	if first.Since.IsZero() || !first.Behind.IsZero() {
		t.Errorf("served since %v, behind since %v", first.Since, first.Behind)
	}
	last := r.until("the API is heard again", func(s mirror.Status) bool {
		r.api.bookmark()
		return s.Heard.After(first.Heard) && s.Heard.After(first.Since)
	})
	for _, resource := range last.Resources {
		if resource.Heard.Before(last.Heard) {
			t.Errorf("%s was heard before the one that was heard first: %+v", resource.Resource, last)
		}
	}
	r.start()
	again := r.until("the mirror of now has heard the API", func(s mirror.Status) bool {
		r.api.bookmark()
		return s.Generation == first.Generation && s.Heard.After(last.Heard)
	})
	if again.Since.IsZero() || !again.Since.Before(last.Heard) {
		t.Errorf("served since %v, and after a restart since %v", first.Since, again.Since)
	}
}

// What is held back is behind until it is confirmed, and an object that is refused is not.
func TestBehind(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{"a", "b", "c"} {
		r.api.apply(cluster(name, name))
	}
	r.start()
	r.serves("a", "b", "c")
	r.api.apply("apiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: bad}\nspec: {authentication: {}}")
	if s := r.until("it is refused", isRefused("Cluster/bad")); !s.Behind.IsZero() || s.RefusedByReason[mirror.ReasonInvalid] != 1 {
		t.Errorf("%+v", s)
	}
	r.api.remove("Cluster/a", "Cluster/b", "Cluster/c")
	held := r.until("it is held back", func(s mirror.Status) bool { return s.Next != nil && len(s.Next.Lost) > 0 })
	if held.Behind.IsZero() {
		t.Errorf("%+v", held)
	}
	r.api.apply(cluster("a", "a"))
	r.api.apply(cluster("b", "b"))
	r.serves("a", "b")
	r.until("it is behind no more", func(s mirror.Status) bool { return s.Next == nil && s.Behind.IsZero() })
}
