// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"encoding/json"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// webhooksField is where fieldsV1 has who owns which webhook.
const webhooksField = "f:webhooks"

// takeOver returns the managed fields of a registration, where whoever applied it before
// no longer owns the webhooks, and we do: server-side apply keeps what another owns, such
// as an entry that nobody wants any more. Everything else stays whose it is. ok is false
// when no other owns any.
func takeOver(entries []metav1.ManagedFieldsEntry, now metav1.Time) (taken []metav1.ManagedFieldsEntry, ok bool, err error) {
	own := metav1.ManagedFieldsEntry{Manager: fieldManager, Operation: metav1.ManagedFieldsOperationApply,
		APIVersion: registrationVersion, Time: &now, FieldsType: "FieldsV1"}
	fields := map[string]any{}
	for _, e := range entries {
		set, err := fieldsOf(&e)
		if err != nil {
			return nil, false, err
		}
		if e.Manager == own.Manager && e.Operation == own.Operation && e.Subresource == "" {
			fields = union(fields, set)
			continue
		}
		if theirs, has := set[webhooksField].(map[string]any); has && e.Subresource == "" {
			fields = union(fields, map[string]any{webhooksField: theirs})
			delete(set, webhooksField)
			ok = true
			if len(set) == 0 {
				continue
			}
			if e.FieldsV1, err = fieldsV1(set); err != nil {
				return nil, false, err
			}
		}
		taken = append(taken, e)
	}
	own.FieldsV1, err = fieldsV1(fields)
	return append(taken, own), ok, err
}

func fieldsOf(e *metav1.ManagedFieldsEntry) (map[string]any, error) {
	set := map[string]any{}
	text, err := json.Marshal(e.FieldsV1)
	if err == nil {
		err = json.Unmarshal(text, &set)
	}
	if err != nil {
		return nil, fmt.Errorf("the managed fields of %s cannot be read: %w", e.Manager, err)
	}
	return set, nil
}

func fieldsV1(set map[string]any) (*metav1.FieldsV1, error) {
	text, err := json.Marshal(set)
	if err != nil {
		return nil, err
	}
	f := &metav1.FieldsV1{}
	return f, json.Unmarshal(text, f)
}

// union puts two sets of fields together. A set is a trie: {} below a name is a member,
// and so is a name that has "." below it.
func union(a, b map[string]any) map[string]any {
	out := make(map[string]any, len(a)+len(b))
	maps.Copy(out, a)
	for key, value := range b {
		theirs, _ := value.(map[string]any)
		had, ok := out[key].(map[string]any)
		if !ok {
			out[key] = value
			continue
		}
		both := union(had, theirs)
		if (len(had) == 0) != (len(theirs) == 0) {
			both["."] = map[string]any{}
		}
		out[key] = both
	}
	return out
}
