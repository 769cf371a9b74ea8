// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/admission-dispatcher/dispatcher/policy/schema"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// kinds knows the types of kinds. It keeps those of CustomResourceDefinitions for the next
// load: one may be megabytes long.
type kinds struct {
	read  map[customSum]*schema.Custom // by what it is read from, of the last load
	list  []*schema.Custom
	types *schema.Types // built in, and of list; nil: nobody has asked
}

type customSum [sha256.Size]byte

// readCustom reads the schemas of the CustomResourceDefinitions.
func (k *kinds) readCustom(objects *manifest.Objects, d *diagnostics) {
	read, list := map[customSum]*schema.Custom{}, []*schema.Custom(nil)
	for i := range objects.CustomResources {
		c := &objects.CustomResources[i]
		for j, v := range c.Versions {
			kind := c.GroupVersionKind(v.Name)
			sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %s", kind, c.Plural, v.Schema))
			made := k.read[sum]
			if made == nil {
				custom, errs := schema.ReadCustom(kind, c.Plural, v.Schema, c.Schema(j))
				if len(errs) > 0 {
					d.problem(c.Problems(errs)...)
					continue
				}
				made = custom
			}
			read[sum], list = made, append(list, made)
		}
	}
	if !slices.Equal(k.list, list) {
		k.types = nil
	}
	k.read, k.list = read, list
}

// all returns the types of the kinds that are built in, and of those that the sources define.
func (k *kinds) all() *schema.Types {
	if k.types == nil {
		k.types = schema.BuiltIn().With(k.list)
	}
	return k.types
}
