// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	yaml "sigs.k8s.io/yaml/goyaml.v2" // the only reader below sigs.k8s.io/yaml that reads streams and lets us bound aliases
)

// maxExpansion bounds the text of one document after its aliases are resolved,
// in bytes. etcd holds objects of at most 1.5 MiB.
const maxExpansion = 16 << 20

// documents returns the documents of a file as JSON, strictly read: no
// duplicate keys, no keys but strings, bounded aliases. Empty documents are
// left out. After a syntax error the rest of the file cannot be read.
func documents(name string, data []byte) (docs []json.RawMessage, errs []error) {
	if !utf8.Valid(data) {
		return nil, []error{errors.New("not UTF-8")}
	}
	next := yamlDocuments(data)
	if filepath.Ext(name) == ".json" {
		next = jsonDocuments(data)
	}
	for {
		doc, err := next()
		var syntax syntaxError
		switch {
		case errors.Is(err, io.EOF):
			return docs, errs
		case errors.As(err, &syntax):
			return docs, append(errs, err)
		case err != nil:
			errs = append(errs, err)
		case doc != nil:
			docs = append(docs, doc)
		}
	}
}

// syntaxError ends a file.
type syntaxError struct{ error }

// jsonDocuments leaves duplicate keys to the strict decoder: it sees the same
// bytes.
func jsonDocuments(data []byte) func() (json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	return func() (json.RawMessage, error) {
		var doc json.RawMessage
		err := d.Decode(&doc)
		if err != nil && !errors.Is(err, io.EOF) {
			err = syntaxError{err}
		}
		return doc, err
	}
}

func yamlDocuments(data []byte) func() (json.RawMessage, error) {
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.SetStrict(true)
	return func() (json.RawMessage, error) {
		var tree any
		var content *yaml.TypeError // duplicate keys
		err := d.Decode(&tree)
		switch {
		case errors.As(err, &content):
			return nil, errors.New(strings.Join(content.Errors, "; "))
		case err != nil && !errors.Is(err, io.EOF):
			return nil, syntaxError{err}
		case err != nil || tree == nil:
			return nil, err
		}
		return treeJSON(tree)
	}
}

func treeJSON(tree any) (json.RawMessage, error) {
	left := maxExpansion
	plain, err := stringKeyed(tree, &left)
	if err != nil {
		return nil, err
	}
	return json.Marshal(plain)
}

// stringKeyed returns tree with maps as JSON has them, counting down left by
// the size of the text.
func stringKeyed(tree any, left *int) (any, error) {
	*left--
	if s, ok := tree.(string); ok {
		*left -= len(s)
	}
	if *left < 0 {
		return nil, fmt.Errorf("document is larger than %d bytes after its aliases are resolved", maxExpansion)
	}
	switch t := tree.(type) {
	case map[any]any:
		return stringKeyedMap(t, left)
	case []any:
		list := make([]any, len(t))
		for i := range t {
			item, err := stringKeyed(t[i], left)
			if err != nil {
				return nil, err
			}
			list[i] = item
		}
		return list, nil
	}
	return tree, nil
}

// stringKeyedMap goes by the names of the keys, so that of several mistakes it always finds
// the same one.
func stringKeyedMap(tree map[any]any, left *int) (any, error) {
	names, others := make([]string, 0, len(tree)), []string(nil)
	for key := range tree {
		if name, ok := key.(string); ok {
			names = append(names, name)
		} else {
			others = append(others, fmt.Sprint(key))
		}
	}
	if len(others) > 0 {
		return nil, fmt.Errorf("key %s is not a string; quote it", slices.Min(others))
	}
	slices.Sort(names)
	object := make(map[string]any, len(tree))
	for _, name := range names {
		*left -= len(name)
		plain, err := stringKeyed(tree[name], left)
		if err != nil {
			return nil, err
		}
		object[name] = plain
	}
	return object, nil
}
