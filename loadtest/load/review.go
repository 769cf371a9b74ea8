// SPDX-License-Identifier: Apache-2.0

package load

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/admission-dispatcher/dispatcher/loadtest/history"
)

// text returns a JSON value of about size bytes, at least 200.
func (f Filler) text(size int) string {
	size = max(size, 200)
	switch f {
	case Escapes:
		return `"` + strings.Repeat(`\u003c`, size/6) + `"`
	case Zeros:
		return "[0" + strings.Repeat(",0", size/2) + "]"
	}
	return `"` + strings.Repeat("x", size) + `"`
}

// review returns an AdmissionReview for the call, and the object in it.
func review(c *history.Call, r Resource, filler string) (body, object []byte) {
	operation := r.Operation
	if operation == "" {
		operation = "CREATE"
	}
	group := ""
	if r.Group != "" {
		group = r.Group + "/"
	}
	object = fmt.Appendf(nil, `{"apiVersion":"%s%s","kind":%q,"metadata":{"name":%q,"namespace":%q,"labels":{"app":"load"},"annotations":{"uid":%q}},"spec":{"filler":%s}}`,
		group, r.Version, r.Kind, c.UID, r.Namespace, c.UID, filler)
	groups, _ := json.Marshal(append([]string{"system:authenticated"}, r.Groups...)) // strings
	body = fmt.Appendf(nil, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":%[1]q,"kind":{"group":%[2]q,"version":%[3]q,"kind":%[4]q},"resource":{"group":%[2]q,"version":%[3]q,"resource":%[5]q}%[6]s,"requestKind":{"group":%[2]q,"version":%[3]q,"kind":%[4]q},"requestResource":{"group":%[2]q,"version":%[3]q,"resource":%[5]q}%[7]s,"name":%[1]q,"namespace":%[8]q,"operation":%[9]q,"userInfo":{"username":%[10]q,"groups":%[11]s},"object":%[12]s,"oldObject":%[13]s,"dryRun":false,"options":null}}`,
		c.UID, r.Group, r.Version, r.Kind, r.Resource, sub("subResource", r.SubResource), sub("requestSubResource", r.SubResource),
		r.Namespace, operation, r.User, groups, object, old(operation, object))
	return body, object
}

func sub(field, value string) string {
	if value == "" {
		return ""
	}
	return fmt.Sprintf(",%q:%q", field, value)
}

func old(operation string, object []byte) string {
	if operation == "UPDATE" {
		return string(object)
	}
	return "null"
}

// answer is an AdmissionReview as callers read it.
type answer struct {
	Response *struct {
		UID              string
		Allowed          bool
		Patch            []byte
		Warnings         []string
		AuditAnnotations map[string]string
		Status           struct {
			Code    int32
			Message string
		}
	}
}

// read fills in what the answer says.
func read(c *history.Call, body []byte) {
	var a answer
	if err := json.Unmarshal(body, &a); err != nil || a.Response == nil {
		if c.Status == 200 {
			c.Err = "the answer is no AdmissionReview"
			return
		}
		c.Message = strings.TrimSpace(strings.ToValidUTF8(string(body[:min(len(body), shownMessage)]), ""))
		return
	}
	r := a.Response
	c.UIDAnswered, c.Allowed, c.Patch, c.Warnings, c.Annotations = r.UID, r.Allowed, r.Patch, r.Warnings, r.AuditAnnotations
	c.Code, c.Message = r.Status.Code, r.Status.Message
}
