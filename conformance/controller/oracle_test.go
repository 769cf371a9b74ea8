// SPDX-License-Identifier: Apache-2.0

// Package controller_test compares the plugins of plugin/kubernetes with those of
// kube-apiserver, of which they have the names. Those are asked by a program of a module of
// its own, ../kubernetes.
package controller_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// denial is how kube-apiserver's plugin denies.
type denial struct {
	Plain   bool // with an error that is no status
	Code    int32
	Reason  string
	Message string
}

// theirs is what kube-apiserver's plugin answers.
type theirs struct {
	Object, OldObject, Mutated json.RawMessage
	Mutates, Validates         bool
	Mutation, Validation       *denial
}

// original is the program with kube-apiserver's plugins.
type original struct {
	in  *json.Encoder
	out *json.Decoder
}

// startOriginal builds and starts the program, which ends with the test.
func startOriginal(t *testing.T) *original {
	t.Helper()
	program := filepath.Join(t.TempDir(), "kubernetes")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir, build.Stderr = "../kubernetes", os.Stderr
	if err := build.Run(); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program)
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := command.Wait(); err != nil {
			t.Error(err)
		}
	})
	return &original{in: json.NewEncoder(in), out: json.NewDecoder(out)}
}

// ask asks about one request.
func (o *original) ask(t *testing.T, q *request) (answer theirs) {
	t.Helper()
	err := o.in.Encode(map[string]any{
		"plugin": q.plugin, "configuration": q.Configuration, "stored": q.Stored, "rights": q.rights, "operation": q.Operation,
		"kind":     metav1.GroupVersionKind{Group: q.Resource.Group, Version: q.Resource.Version, Kind: q.Kind},
		"resource": metav1.GroupVersionResource(q.Resource), "subresource": q.Subresource,
		"namespace": q.Namespace, "name": q.Name, "object": q.asked(), "oldObject": q.Old,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.out.Decode(&answer); err != nil {
		t.Fatalf("%s: %v", q.plugin, err)
	}
	return answer
}
