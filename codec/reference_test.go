// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// review is an AdmissionReview under test: a plain one, changed by the test.
type review struct {
	apiVersion string
	request    map[string]any
}

// plainReview is what kube-apiserver sends for a small Pod.
func plainReview() review {
	pods := map[string]any{"group": "", "version": "v1", "resource": "pods"}
	pod := map[string]any{"group": "", "version": "v1", "kind": "Pod"}
	return review{
		apiVersion: "admission.k8s.io/v1",
		request: map[string]any{
			"uid": "0f7c9d0e", "kind": pod, "resource": pods, "requestKind": pod, "requestResource": pods,
			"name": "web", "namespace": "shop", "operation": "CREATE",
			"userInfo": map[string]any{"username": "ann", "uid": "7", "groups": []string{"dev", "system:authenticated"},
				"extra": map[string]any{"scopes": []string{"a", "b"}}},
			"object": map[string]any{"kind": "Pod", "apiVersion": "v1",
				"metadata": map[string]any{"name": "web", "namespace": "shop", "uid": "o1", "labels": map[string]any{"app": "web", "tier": "front"}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": "registry/web:1"}}}},
			"oldObject": nil, "dryRun": false, "options": map[string]any{"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
		},
	}
}

// with sets fields of the request.
func (r review) with(kv ...any) review {
	for i := 0; i < len(kv); i += 2 {
		r.request[kv[i].(string)] = kv[i+1]
	}
	return r
}

// without removes fields of the request.
func (r review) without(names ...string) review {
	for _, name := range names {
		delete(r.request, name)
	}
	return r
}

func (r review) json() string {
	b, err := json.Marshal(map[string]any{"kind": "AdmissionReview", "apiVersion": r.apiVersion, "request": r.request})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// raw is JSON that goes into a review as it is.
func raw(s string) json.RawMessage { return json.RawMessage(s) }

// swap returns the plain review with old, which must be there, replaced.
func swap(t testing.TB, old, with string) string {
	t.Helper()
	plain := plainReview().json()
	if !strings.Contains(plain, old) {
		t.Fatalf("no %s in %s", old, plain)
	}
	return strings.Replace(plain, old, with, 1)
}

// decode returns the Review of body, valid until the end of the test, and
// Decode's error.
func decode(t testing.TB, body string) (*codec.Review, error) {
	t.Helper()
	b := codec.NewBody([]byte(body), func(data []byte) { clear(data) })
	r := codec.AcquireReview()
	err := r.Decode(b)
	b.Release()
	t.Cleanup(func() { codec.ReleaseReview(r) })
	return r, err
}

func mustDecode(t testing.TB, body string) *codec.Review {
	t.Helper()
	r, err := decode(t, body)
	if err != nil {
		t.Fatalf("Decode: %v", err)
	}
	return r
}

// Reference payloads of the benchmarks, varied enough not to flatter a branch
// predictor; the same in every run.

// referencePod has about 1.8 KB per container.
func referencePod(size int) map[string]any {
	rnd := rand.New(rand.NewPCG(1, 2))
	var containers []any
	for i := range size {
		var env []any
		for j := range 8 {
			env = append(env, map[string]any{"name": fmt.Sprintf("SETTING_%d_%d", i, j), "value": word(rnd, 4+rnd.IntN(40))})
		}
		containers = append(containers, map[string]any{
			"name": word(rnd, 8), "image": "registry.example.com/" + word(rnd, 6) + "/" + word(rnd, 12) + ":v1.2.3",
			"args": []any{"--listen=:8080", "--level=" + word(rnd, 5), "--path=/var/" + word(rnd, 9)}, "env": env,
			"ports":                    []any{map[string]any{"containerPort": 8080 + i, "protocol": "TCP"}},
			"resources":                map[string]any{"limits": map[string]any{"cpu": "500m", "memory": "256Mi"}, "requests": map[string]any{"cpu": "100m", "memory": "64Mi"}},
			"livenessProbe":            map[string]any{"httpGet": map[string]any{"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10, "timeoutSeconds": 1},
			"volumeMounts":             []any{map[string]any{"name": "kube-api-access", "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}},
			"terminationMessagePath":   "/dev/termination-log",
			"terminationMessagePolicy": "File", "imagePullPolicy": "IfNotPresent",
			"securityContext": map[string]any{"runAsNonRoot": true, "allowPrivilegeEscalation": false},
		})
	}
	return map[string]any{
		"kind": "Pod", "apiVersion": "v1",
		"metadata": map[string]any{
			"name": "web-7d4b9c-x2x4z", "generateName": "web-7d4b9c-", "namespace": "shop", "creationTimestamp": nil,
			"labels":          map[string]any{"app": "web", "pod-template-hash": "7d4b9c", "app.kubernetes.io/part-of": "shop"},
			"annotations":     map[string]any{"checksum/config": word(rnd, 64), "note": "line one\nline \"two\""},
			"ownerReferences": []any{map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7d4b9c", "uid": "c9f8", "controller": true}},
			"managedFields":   []any{map[string]any{"manager": "kube-controller-manager", "operation": "Update", "fieldsV1": managedFields(rnd)}},
		},
		"spec":   map[string]any{"containers": containers, "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst", "serviceAccountName": "web", "schedulerName": "default-scheduler", "priority": 0, "enableServiceLinks": true},
		"status": map[string]any{},
	}
}

func managedFields(rnd *rand.Rand) map[string]any {
	fields := map[string]any{}
	for range 12 {
		fields["f:"+word(rnd, 3+rnd.IntN(12))] = map[string]any{"f:" + word(rnd, 5): map[string]any{}, ".": map[string]any{}}
	}
	return fields
}

func word(rnd *rand.Rand, n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789-"
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[rnd.IntN(len(letters))]
	}
	return string(b)
}

// referenceConfigMap has about size bytes of text files: properties, YAML, and
// one in three with quotes to escape.
func referenceConfigMap(size int) map[string]any {
	rnd := rand.New(rand.NewPCG(3, 4))
	data := map[string]any{}
	formats := []string{"%s=%s\n", "    %s: %s\n", "%s = %q\n"}
	for total := 0; total < size; {
		var file strings.Builder
		for range 20 + rnd.IntN(60) {
			fmt.Fprintf(&file, formats[len(data)%len(formats)], word(rnd, 4+rnd.IntN(16)), word(rnd, rnd.IntN(60)))
		}
		data[word(rnd, 12)+".conf"] = file.String()
		total += file.Len()
	}
	return map[string]any{"kind": "ConfigMap", "apiVersion": "v1", "metadata": map[string]any{"name": "files", "namespace": "shop"}, "data": data}
}

// referenceCRD has about size bytes of a schema: many short keys, deep.
func referenceCRD(size int) map[string]any {
	rnd := rand.New(rand.NewPCG(5, 6))
	properties := map[string]any{}
	for n := 0; n*170 < size; n++ {
		properties[word(rnd, 4+rnd.IntN(14))] = map[string]any{
			"type": "object", "description": strings.Repeat(word(rnd, 7)+" ", 1+rnd.IntN(8)),
			"properties": map[string]any{word(rnd, 6): map[string]any{"type": "string", "maxLength": rnd.IntN(512)}, word(rnd, 9): map[string]any{"type": "boolean", "nullable": true}},
		}
	}
	schema := map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": properties}}
	return map[string]any{"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1", "metadata": map[string]any{"name": "things.example.com"},
		"spec": map[string]any{"group": "example.com", "versions": []any{map[string]any{"name": "v1", "schema": schema}}}}
}
