// SPDX-License-Identifier: Apache-2.0

// Package inventory reads what a workload cluster has registered with its API server, and
// what the rules of package lint look at besides. It reads, and writes nothing.
package inventory

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/admission-dispatcher/dispatcher/lint"
)

// The bounds of what is read of a cluster. A page has at most pageSize objects.
const (
	pageSize          = 100
	maxConfigurations = 2_000
	maxNamespaces     = 50_000
	maxAPIServices    = 5_000
	maxServices       = 500 // that webhooks and APIServices name; of others nothing is known
	maxSlices         = 1_000
	maxBytes          = 64 << 20 // of the objects of a resource, as JSON
)

// Inventory is what a cluster has.
type Inventory struct {
	// Configurations are its webhook configurations, as the API has them.
	Configurations []unstructured.Unstructured
	// Lint is the same for package lint, with what else was read.
	Lint lint.Input
	// Notes say what could not be read, so that rules do not look at it.
	Notes []string
}

func core(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: resource}
}

func admission(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource}
}

// ReadConfigurations reads the webhook configurations of a cluster, and nothing else.
func ReadConfigurations(ctx context.Context, client dynamic.Interface) (list []unstructured.Unstructured, err error) {
	for _, resource := range []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"} {
		of, err := read(ctx, client.Resource(admission(resource)), metav1.ListOptions{}, maxConfigurations)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", resource, err)
		}
		list = append(list, of...)
	}
	return list, nil
}

// Read reads a cluster. What it has no right to read is a note; that the configurations
// cannot be read is an error.
func Read(ctx context.Context, client dynamic.Interface) (*Inventory, error) {
	in := &Inventory{}
	var err error
	if in.Configurations, err = ReadConfigurations(ctx, client); err != nil {
		return nil, err
	}
	r := &reading{client: client, into: in}
	r.add(in.Configurations)
	r.optional(ctx, core("namespaces"), maxNamespaces, "labels of namespaces are not known (W4)")
	r.optional(ctx, schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}, maxAPIServices, "extension API servers are not looked at (W8)")
	if r.err != nil {
		return nil, r.err
	}
	if err := r.services(ctx); err != nil {
		return nil, err
	}
	in.Lint = r.manifests.Input()
	for _, name := range r.unknown {
		in.Lint.Services[name] = lint.Service{}
	}
	return in, nil
}

// reading is what has been read so far.
type reading struct {
	client    dynamic.Interface
	into      *Inventory
	manifests lint.Reader
	unknown   []lint.ServiceName // Services that were not looked at
	err       error
}

// add hands objects to the linter's reader.
func (r *reading) add(list []unstructured.Unstructured) {
	for i := range list {
		text, err := list[i].MarshalJSON()
		if err == nil {
			err = r.manifests.Read("", text)
		}
		if err != nil && r.err == nil {
			r.err = err
		}
	}
}

// optional reads all objects of a resource, or notes why not.
func (r *reading) optional(ctx context.Context, resource schema.GroupVersionResource, most int, without string) {
	list, err := read(ctx, r.client.Resource(resource), metav1.ListOptions{}, most)
	switch {
	case err == nil:
		r.add(list)
	case isRefusal(err):
		r.into.Notes = append(r.into.Notes, fmt.Sprintf("%s: %v: %s", resource.Resource, err, without))
	case r.err == nil:
		r.err = fmt.Errorf("list %s: %w", resource.Resource, err)
	}
}

// isRefusal reports whether the API server has what is asked for, and not for us, or has
// it not.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || errors.Is(err, errTooMany)
}

// services reads the Services that webhooks and APIServices name, and their endpoints.
func (r *reading) services(ctx context.Context) error {
	in := r.manifests.Input()
	var names []lint.ServiceName
	add := func(n lint.ServiceName) {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	for i := range in.Configurations {
		for j := range in.Configurations[i].Webhooks {
			if s := in.Configurations[i].Webhooks[j].ClientConfig.Service; s != nil {
				add(lint.ServiceName{Namespace: s.Namespace, Name: s.Name})
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	if len(names) > maxServices {
		r.into.Notes = append(r.into.Notes, fmt.Sprintf("services: webhooks name %d, and %d are looked at", len(names), maxServices))
		r.unknown, names = names[maxServices:], names[:maxServices]
	}
	r.manifests.KnowServices()
	for _, n := range names {
		if err := r.service(ctx, n); isRefusal(err) {
			r.into.Notes = append(r.into.Notes, fmt.Sprintf("services: %v: whether somebody answers is not known (W7)", err))
			r.unknown = append(r.unknown, n)
		} else if err != nil {
			return fmt.Errorf("read Service %s/%s: %w", n.Namespace, n.Name, err)
		}
	}
	return nil
}

// service reads one Service and its endpoints. That it is not there is no error.
func (r *reading) service(ctx context.Context, n lint.ServiceName) error {
	s, err := r.client.Resource(core("services")).Namespace(n.Namespace).Get(ctx, n.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	endpoints := schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}
	list, err := read(ctx, r.client.Resource(endpoints).Namespace(n.Namespace), metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=" + n.Name}, maxSlices)
	if err != nil {
		return err
	}
	if len(list) == 0 { // an EndpointSlice says that endpoints are counted
		empty := unstructured.Unstructured{Object: map[string]any{"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "endpoints": []any{}}}
		empty.SetName(n.Name)
		empty.SetNamespace(n.Namespace)
		empty.SetLabels(map[string]string{"kubernetes.io/service-name": n.Name})
		list = append(list, empty)
	}
	r.add(append(list, *s))
	return r.err
}

var errTooMany = errors.New("there are more than are read")

// read lists all objects of a resource page by page.
func read(ctx context.Context, from dynamic.ResourceInterface, o metav1.ListOptions, most int) (list []unstructured.Unstructured, err error) {
	o.Limit = pageSize
	size := 0
	for {
		page, err := from.List(ctx, o)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			u := &page.Items[i]
			u.SetManagedFields(nil)
			text, err := u.MarshalJSON()
			if err != nil {
				return nil, err
			}
			if size += len(text); len(list) == most || size > maxBytes {
				return nil, fmt.Errorf("%w: %d objects of %d bytes", errTooMany, most, maxBytes)
			}
			list = append(list, *u)
		}
		if o.Continue = page.GetContinue(); o.Continue == "" {
			return list, nil
		}
	}
}
