// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"errors"
	"io"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// ReadDocument reads the schemas of an OpenAPI v3 document of a cluster, from which the rest
// is dropped while it is read. The caller bounds the bytes. size is how many schemas there
// are, of which those in one another count, too. Of schemas that say they are one kind, the
// first by name is its type.
func ReadDocument(from io.Reader) (types *Types, size int, err error) {
	r := newNodeReader(from, false)
	var all map[string]*node
	at := field.NewPath("components", "schemas")
	err = r.members(func(key string) error {
		if key != "components" {
			return r.skip()
		}
		return r.members(func(key string) (err error) {
			if key != "schemas" {
				return r.skip()
			}
			all, err = r.nodes(at)
			return err
		})
	})
	switch {
	case len(r.errs) > 0: // the API server takes none of it then
		return nil, 0, r.errs[0]
	case err != nil:
		return nil, 0, err
	case all == nil:
		return nil, 0, errNoSchemas
	}
	t := &Types{names: map[schema.GroupVersionKind]string{}}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, kind := range all[name].kinds {
			if _, twice := t.names[kind]; !twice {
				t.names[kind] = name
			}
		}
	}
	t.parser = &typed.Parser{Schema: smd.Schema{Types: append(named(all), common()...)}}
	return t, maxNodes - r.left, nil
}

var errNoSchemas = errors.New("it has no components.schemas")
