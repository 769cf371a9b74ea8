// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// object is one version of an object of the API, as it is served: its manifests, and the
// files that they name.
type object struct {
	key     string // Kind/name
	created time.Time
	urgent  bool // it says ActivateAnnotation
	// generation is the API's number of this version. attested says that the object's
	// status has accepted it.
	generation int64
	attested   bool
	// files are its manifests, and below filesDirectory what these name.
	files map[string][]byte
	hash  string // of files

	unresolved []manifest.Problem // why it cannot be judged
}

// filesDirectory is where what manifests name lies: a source does not read
// subdirectories.
const filesDirectory = "files/"

// newObject returns a version; files is kept.
func newObject(key string, created time.Time, files map[string][]byte) *object {
	o := &object{key: key, created: created, files: files}
	o.hash = hashOf(files)
	return o
}

// kind is the object's kind.
func (o *object) kind() string {
	return KindOf(o.key)
}

// has reports whether the file is the object's.
func (o *object) has(file string) bool {
	_, ok := o.files[file]
	return ok
}

// hashOf sums names and contents.
func hashOf(files map[string][]byte) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		manifest.WritePart(h, []byte(name))
		manifest.WritePart(h, files[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// filesOf puts the files of objects together. Their names differ, because they begin with
// the kind and the name, or a sum of these.
func filesOf(objects []*object) map[string][]byte {
	all := map[string][]byte{}
	for _, o := range objects {
		maps.Copy(all, o.files)
	}
	return all
}

// longestName is the longest part of a file's name that is written out, in bytes.
const longestName = 100

// fileName returns a name for a file of an object, without the extension.
func fileName(parts ...string) string {
	name := strings.Join(parts, ".")
	if len(name) > longestName {
		return parts[0] + "." + sum(parts...)
	}
	return name
}

// sum is a short name for what the parts name.
func sum(parts ...string) string {
	h := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(h[:16])
}
