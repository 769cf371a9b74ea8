// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"encoding/json"
	"strings"
)

// kept is what is kept of a document while it is read: JSON without white space, at
// most limit bytes. A nil one keeps nothing.
type kept struct {
	json   []byte
	values int  // strings, numbers, objects and so on; keys too
	over   bool // there was more, or something that cannot be kept: json is of no use
}

// maxBody bounds the bytes of one object, as it is kept: etcd takes 1.5 MiB with the
// managedFields.
const maxBody = 1 << 20

// keptBuffer is how much of the memory of one object is used again for the next.
const keptBuffer = 64 << 10

func (k *kept) add(b ...byte) {
	if k == nil || k.over {
		return
	}
	if len(k.json)+len(b) > maxBody {
		k.over = true
		return
	}
	k.json = append(k.json, b...)
}

// apart keeps what begins with c apart from a value before it: without the white space
// two that no comma parts would be one.
func (k *kept) apart(c byte) {
	if k == nil || len(k.json) == 0 || strings.IndexByte(",:]}", c) >= 0 || strings.IndexByte(",:[{", k.json[len(k.json)-1]) >= 0 {
		return
	}
	k.add(' ')
}

func (k *kept) count() {
	if k != nil {
		k.values++
	}
}

// key begins a member.
func (k *kept) key(key string) {
	if n := len(k.json); n > 0 && k.json[n-1] != '{' {
		k.add(',')
	}
	k.text(key)
	k.add(':')
}

// text adds a string.
func (k *kept) text(text string) {
	quoted, _ := json.Marshal(text) // a string always has a form
	k.count()
	k.add(quoted...)
}

// again makes k empty.
func (k *kept) again() {
	if cap(k.json) > keptBuffer {
		k.json = nil
	}
	*k = kept{json: k.json[:0]}
}
