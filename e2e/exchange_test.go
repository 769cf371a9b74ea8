// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// request is what somebody sends to a kube-apiserver, the same to several.
type request struct {
	name        string // of the test
	method      string
	path        string // with the query
	contentType string
	body        any    // bytes, or what JSON is made of
	user        string // empty: the superuser
	groups      []string
	namespace   string // empty: cluster-scoped
	resource    string // such as pods, or nodes/status

	// before are the objects that must be there already.
	before []*unstructured.Unstructured
}

// answer is what came of a request in one cluster.
type answer struct {
	code     int
	status   *metav1.Status // of what failed
	object   map[string]any // of what did not, without what differs between any two clusters
	warnings []string
	audit    map[string]string // annotations
}

// allowed reports whether the request was done.
func (a answer) allowed() bool { return a.code < http.StatusBadRequest }

// send sends a request. The audit log is read later, by its id.
func (c *cluster) send(t *testing.T, r request, auditID string) (answer, error) {
	client, err := rest.HTTPClientFor(c.as("policy-token"))
	if err != nil {
		return answer{}, err
	}
	body, ok := r.body.([]byte)
	if !ok && r.body != nil {
		if body, err = json.Marshal(r.body); err != nil {
			return answer{}, err
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), r.method, c.config.Host+r.path, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Audit-Id", auditID)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "e2e")
	req.Header.Set("Content-Type", r.contentType)
	if r.user != "" {
		req.Header.Set("Impersonate-User", r.user)
		for _, g := range r.groups {
			req.Header.Add("Impersonate-Group", g)
		}
	}
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, err
	}
	return newAnswer(resp, data)
}

func newAnswer(resp *http.Response, data []byte) (answer, error) {
	a := answer{code: resp.StatusCode}
	warnings, errs := net.ParseWarningHeaders(resp.Header["Warning"])
	if len(errs) > 0 {
		return a, errs[0]
	}
	for _, w := range warnings {
		a.warnings = append(a.warnings, w.Text)
	}
	if !a.allowed() {
		a.status = &metav1.Status{}
		if err := json.Unmarshal(data, a.status); err != nil {
			return a, fmt.Errorf("status %d: %w: %s", a.code, err, data)
		}
		return a, nil
	}
	err := json.Unmarshal(comparable(data), &a.object)
	if err != nil {
		return a, fmt.Errorf("status %d: %w: %s", a.code, err, data)
	}
	withoutOwn(a.object)
	items, _ := a.object["items"].([]any)
	for _, o := range items {
		withoutOwn(o.(map[string]any))
	}
	return a, nil
}

// comparable takes an object's uid out of its text, also where it is quoted, as in
// the selector of a Job.
func comparable(data []byte) []byte {
	var o metav1.PartialObjectMetadata
	if json.Unmarshal(data, &o) == nil && o.UID != "" {
		data = bytes.ReplaceAll(data, []byte(o.UID), []byte("UID"))
	}
	return data
}

// withoutOwn removes what an object has of its own in each cluster.
func withoutOwn(o map[string]any) {
	for _, path := range []string{
		"metadata.creationTimestamp", "metadata.deletionTimestamp", "metadata.resourceVersion", "metadata.uid", "details.uid",
		"spec.clusterIP", "spec.clusterIPs",
	} {
		unstructured.RemoveNestedField(o, strings.Split(path, ".")...)
	}
	if generated, _, _ := unstructured.NestedString(o, "metadata", "generateName"); generated != "" {
		_ = unstructured.SetNestedField(o, generated+"*", "metadata", "name")
	}
	fields, _, _ := unstructured.NestedSlice(o, "metadata", "managedFields")
	for _, f := range fields {
		delete(f.(map[string]any), "time")
	}
	if len(fields) > 0 {
		_ = unstructured.SetNestedSlice(o, fields, "metadata", "managedFields")
	}
}

// audits returns the annotations of all events whose ids begin so, by id.
func (c *cluster) audits(prefix string) (map[string]map[string]string, error) {
	log, err := os.Open(c.audit)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	all := map[string]map[string]string{}
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if !bytes.Contains(lines.Bytes(), []byte(`"auditID":"`+prefix)) {
			continue
		}
		var event struct {
			AuditID     string
			Annotations map[string]string
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			continue // the last line is being written
		}
		all[event.AuditID] = event.Annotations
	}
	return all, lines.Err()
}
