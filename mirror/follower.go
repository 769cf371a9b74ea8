// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// Follower watches an API and decides as a Mirror does, and publishes nothing. Of its
// Settings, Spread, Probation, Live and Confirm do not matter; Directory is scratch space.
type Follower struct{ mirror *Mirror }

// Decision is what a mirror that sees the same would serve.
type Decision struct {
	Generation string // its name; equal names, equal objects
	// Objects are those that the API has, by their keys. ConfigMaps with manifests are
	// among them.
	Objects []Judged
	// Clusters are what is accepted, as compiled. Nobody may change them.
	Clusters map[string]*chain.Cluster
	// Kubeconfigs are the contents of the kubeconfigs of those that have one. They are
	// secret.
	Kubeconfigs map[string][]byte
}

// Judged is an object of the API and what was decided of it.
type Judged struct {
	Key        string // Kind/name
	Generation int64  // metadata.generation of what was judged; 0: its kind has none
	// Version is a sum of what would be served of the object as it stands, and Served of
	// what is; "": nothing is. They are the same where it is accepted.
	Version, Served string
	Refused         *Refused           // nil: it is accepted as it stands
	Warnings        []manifest.Problem // of what is served; at most maxProblems
}

// NewFollower returns a Follower. Each decision is given to decided, on the goroutine of
// Run; it belongs to whoever gets it.
func NewFollower(s Settings, decided func(*Decision)) *Follower {
	m := New(s)
	m.decided = decided
	return &Follower{m}
}

// Run follows until ctx is done. The error is that its directory cannot be used.
func (f *Follower) Run(ctx context.Context) error { return f.mirror.Run(ctx) }

// Status returns the status that the API has of an object of one of our kinds, as JSON
// that nobody may change, and the object's metadata.generation. ok is false when there
// is no such object. It is safe for concurrent use.
func (f *Follower) Status(key string) (status json.RawMessage, generation int64, ok bool) {
	kind, name, _ := strings.Cut(key, "/")
	for _, s := range f.mirror.stores {
		if s.kind != kind {
			continue
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if it := s.items[name]; it != nil {
			return it.status, it.Generation, true
		}
	}
	return nil, 0, false
}

// Away returns which resources the API does not give now, and why, at most maxError bytes
// each. It is safe for concurrent use.
func (f *Follower) Away() map[string]string {
	away := map[string]string{}
	for _, s := range f.mirror.stores {
		s.mu.Lock()
		switch {
		case s.err != nil:
			away[s.Resource] = cut(s.err.Error())
		case !s.synced:
			away[s.Resource] = "it has not been listed yet"
		}
		s.mu.Unlock()
	}
	return away
}

func decisionOf(wanted []*object, d *decision) *Decision {
	served, files := byKey(d.objects), map[string]string{}
	out := &Decision{Generation: hashOf(filesOf(d.objects)), Kubeconfigs: map[string][]byte{}}
	for _, o := range d.objects {
		for name := range o.files {
			files[name] = o.key
		}
		if content := kubeconfigOf(o); content != nil {
			out.Kubeconfigs[strings.TrimPrefix(o.key, "Cluster/")] = content
		}
	}
	warnings := map[string][]manifest.Problem{}
	if d.compiled != nil {
		out.Clusters = d.compiled.Clusters
		for _, w := range d.compiled.Warnings {
			if key := files[w.File]; len(warnings[key]) < maxProblems {
				w.File = ""
				warnings[key] = append(warnings[key], w)
			}
		}
	}
	refused := map[string]*Refused{}
	for i := range d.refused {
		refused[d.refused[i].Object] = &d.refused[i]
	}
	for _, o := range wanted {
		j := Judged{Key: o.key, Generation: o.generation, Version: o.hash, Refused: refused[o.key], Warnings: warnings[o.key]}
		if has := served[o.key]; has != nil {
			j.Served = has.hash
		}
		out.Objects = append(out.Objects, j)
	}
	return out
}

// kubeconfigOf returns the content of the kubeconfig that a Cluster names; nil: none.
func kubeconfigOf(o *object) []byte {
	if o.kind() != "Cluster" {
		return nil
	}
	var c struct {
		Spec struct {
			KubeconfigFile string `json:"kubeconfigFile"`
		} `json:"spec"`
	}
	for name, data := range o.files {
		if !strings.HasPrefix(name, filesDirectory) && json.Unmarshal(data, &c) == nil && c.Spec.KubeconfigFile != "" {
			return o.files[c.Spec.KubeconfigFile]
		}
	}
	return nil
}

// KindOf returns the kind in the key of an object.
func KindOf(key string) string {
	kind, _, _ := strings.Cut(key, "/")
	return kind
}
