// SPDX-License-Identifier: Apache-2.0

// Command kubernetes asks the admission plugins of kube-apiserver itself: it reads requests,
// a line of JSON each, and writes what the plugins came to. It is a module of its own,
// because those of k8s.io/kubernetes need the versions of its release.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// Request is one to ask a plugin about, in the versions of the API.
type Request struct {
	Plugin        string `json:"plugin"`
	Configuration string `json:"configuration"`
	// Stored are the objects that the cluster has.
	Stored []json.RawMessage `json:"stored"`
	// Rights is what the answers of the cluster's authorizer are drawn by.
	Rights uint64 `json:"rights"`

	Operation   string                      `json:"operation"`
	Kind        metav1.GroupVersionKind     `json:"kind"`
	Resource    metav1.GroupVersionResource `json:"resource"`
	Subresource string                      `json:"subresource"`
	Namespace   string                      `json:"namespace"`
	Name        string                      `json:"name"`
	Object      json.RawMessage             `json:"object"`
	OldObject   json.RawMessage             `json:"oldObject"`
}

// Answer is what came of a Request.
type Answer struct {
	// Object and OldObject are those of the Request as the API server has them.
	Object    json.RawMessage `json:"object"`
	OldObject json.RawMessage `json:"oldObject"`
	// Mutated is the object as the mutating plugin leaves it. Mutation and Validation are
	// errors, the latter about Object.
	Mutated              json.RawMessage `json:"mutated"`
	Mutates, Validates   bool
	Mutation, Validation *Denial
}

// Denial is an error of a plugin.
type Denial struct {
	Plain   bool // it is no status: the API server makes one with code 500 of it
	Code    int32
	Reason  metav1.StatusReason
	Message string
}

func main() {
	klog.SetLogger(klog.Logger{}) // which writes nothing
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve answers each line with one.
func serve(in io.Reader, out io.Writer) error {
	o, err := newOriginals()
	if err != nil {
		return err
	}
	lines := json.NewDecoder(in)
	buffered := bufio.NewWriter(out)
	for {
		var request Request
		if err := lines.Decode(&request); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		answer, err := o.ask(&request)
		if err != nil {
			return fmt.Errorf("%s: %w", request.Plugin, err)
		}
		if err := json.NewEncoder(buffered).Encode(answer); err != nil {
			return err
		}
		if err := buffered.Flush(); err != nil {
			return err
		}
	}
}
