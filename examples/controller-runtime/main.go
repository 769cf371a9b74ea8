// SPDX-License-Identifier: Apache-2.0

// This is a webhook written for controller-runtime, served by webhookserver, so
// that it may be sent protobuf and compressed bodies.
package main

import (
	"context"
	"log"
	"net/http"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/admission-dispatcher/dispatcher/webhookserver"
)

func main() {
	if len(os.Args) != 4 {
		log.Fatalf("usage: %s ADDRESS CERTIFICATE KEY", os.Args[0])
	}
	server := &http.Server{Addr: os.Args[1], Handler: handler(), ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServeTLS(os.Args[2], os.Args[3]))
}

// handler serves the webhook. NativeObjects is right because owner reads objects
// with controller-runtime's Decoder into types of its scheme, which knows native
// protobuf too. Leave it out for a handler that reads Object.Raw, for instance
// to make a patch with admission.PatchResponseFromRaw, or decodes into
// Unstructured.
func handler() http.Handler {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/validate-owner", webhookserver.New(Adapt(owner{admission.NewDecoder(scheme)}), webhookserver.Options{NativeObjects: true}))
	return mux
}

// owner is an ordinary handler of controller-runtime: it denies pods without
// the label "owner".
type owner struct{ decoder admission.Decoder }

// Handle decides one request.
func (o owner) Handle(_ context.Context, req admission.Request) admission.Response {
	pod := new(corev1.Pod)
	if err := o.decoder.Decode(req, pod); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if pod.Labels["owner"] == "" {
		return admission.Denied(`the label "owner" is missing`)
	}
	return admission.Allowed("")
}
