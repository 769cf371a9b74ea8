// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"io"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxMark is how much of a document's URL, which has a hash of it, is kept.
const maxMark = 1 << 10

// pathOf is what the index calls the document of a group and version.
func pathOf(of schema.GroupVersion) string {
	if of.Group == "" {
		return "api/" + of.Version
	}
	return "apis/" + of.Group + "/" + of.Version
}

// index reads the index, with a mark of the version of each of the documents, by its path.
func (k *Kinds) index(ctx context.Context, all map[schema.GroupVersion]*openAPI) (map[string]string, error) {
	if k.broken != nil {
		return nil, k.broken
	}
	body, err := k.client.get(ctx, acceptAny, nil, "openapi", "v3")
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	wanted := map[string]bool{}
	for of := range all {
		wanted[pathOf(of)] = true
	}
	marks, err := readIndex(&budget{body, maxIndex, maxIndex}, wanted)
	if err != nil {
		return nil, failureOf(err)
	}
	return marks, nil
}

// readIndex reads the index of a cluster's OpenAPI documents. It returns a mark of the version
// of each that is wanted and there, by its path.
func readIndex(from io.Reader, wanted map[string]bool) (map[string]string, error) {
	d, marks := newDocument(from), map[string]string{}
	err := d.object(func(key string) error {
		if key != "paths" {
			return d.skip()
		}
		return d.object(func(path string) error {
			if !wanted[path] {
				return d.skip()
			}
			return d.object(func(key string) (err error) {
				if key != "serverRelativeURL" {
					return d.skip()
				}
				marks[path], _, err = d.text(maxMark)
				return err
			})
		})
	})
	return marks, err
}
