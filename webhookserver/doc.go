// SPDX-License-Identifier: Apache-2.0

// Package webhookserver serves admission webhooks written in Go: write a
// function from a request to a response, and New makes it an http.Handler that
// kube-apiserver and the dispatcher can call.
//
//	http.Handle("/validate", webhookserver.New(validate, webhookserver.Options{}))
//
// The handler reads AdmissionReviews of admission.k8s.io/v1 and v1beta1 as JSON
// and as Kubernetes protobuf, plain or compressed with gzip or zstd, and answers
// in the form and version that it was asked in. Every response says what the
// handler reads, in the headers Accept-Post and Accept-Encoding: a dispatcher
// learns from them to send protobuf, which is quicker to read. kube-apiserver
// ignores them and goes on sending JSON.
//
// What a request that is not a review gets:
//
//	400  the body cannot be read as a review, or ?timeout= as a duration
//	405  the method is not POST
//	413  the body, or what it decompresses to, exceeds Options.MaxBytes
//	415  another Content-Type or Content-Encoding than those that are read
//	500  the function panicked or returned nil
//
// For a caller these are failures of the webhook and not denials: its failure
// policy decides.
package webhookserver
