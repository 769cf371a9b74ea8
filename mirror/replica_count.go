// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/admission-dispatcher/dispatcher/fleet"
)

// serviceLabel is how EndpointSlices name their Service.
const serviceLabel = "kubernetes.io/service-name"

// replicas counts the ready endpoints of the tier's own Service, and writes their number
// beside the generations. While the API is away, or no endpoint is ready, the number of
// before stays.
type replicas struct {
	service types.NamespacedName
	disk    disk
	slices  *store
	changed chan struct{}

	mu      sync.Mutex
	counted int   // what was written last; 0: nothing has been
	err     error // why it could not be
}

func newReplicas(service types.NamespacedName, d disk) *replicas {
	r := &replicas{service: service, disk: d, changed: make(chan struct{}, 1)}
	r.slices = &store{
		resource: resource{schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}, "EndpointSlice", true},
		changed: func() {
			select {
			case r.changed <- struct{}{}:
			default:
			}
		},
		items: map[string]*item{},
	}
	return r
}

// follow counts until ctx is done.
func (r *replicas) follow(ctx context.Context, client dynamic.Interface) {
	var silent klog.Logger // what matters is in the status
	from := client.Resource(r.slices.GroupVersionResource).Namespace(r.service.Namespace)
	reflector := cache.NewReflectorWithOptions(listWatch{from, r.slices, serviceLabel + "=" + r.service.Name, new(int)}, &item{}, r.slices,
		cache.ReflectorOptions{Name: "mirror of the replicas", Logger: &silent})
	reflector.WatchListPageSize = pageSize
	var watching sync.WaitGroup
	watching.Go(func() { reflector.RunWithContext(klog.NewContext(ctx, silent)) })
	defer watching.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.changed:
			r.write(r.slices.endpoints())
		}
	}
}

// write writes the number, if it is another one.
func (r *replicas) write(ready int) {
	ready = min(ready, fleet.MaxReplicas)
	r.mu.Lock()
	defer r.mu.Unlock()
	if ready == 0 || ready == r.counted && r.err == nil {
		return
	}
	if r.err = r.disk.replace(fleet.FileName, fleet.Encode(ready)); r.err == nil {
		r.counted = ready
	}
}

// status returns the number, and resources with that of the slices.
func (r *replicas) status(resources []ResourceStatus) (int, []ResourceStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.slices.status()
	if r.err != nil {
		of.Error = cut(r.err.Error())
	}
	return r.counted, append(resources, of)
}

// endpoints returns how many different endpoints of all slices are ready. A pod that has
// addresses of two families is in two slices.
func (s *store) endpoints() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	ready := map[string]bool{}
	for _, it := range s.items {
		var slice endpointSlice
		if it.json == nil || json.Unmarshal(it.json, &slice) != nil {
			continue
		}
		for i := range slice.Endpoints {
			if e := &slice.Endpoints[i]; e.isReady() {
				ready[e.name()] = true
			}
		}
	}
	return len(ready)
}

// endpointSlice is what counts of an EndpointSlice.
type endpointSlice struct {
	Endpoints []endpoint `json:"endpoints"`
}

type endpoint struct {
	Addresses  []string `json:"addresses"`
	Conditions struct {
		Ready *bool `json:"ready"`
	} `json:"conditions"`
	TargetRef *struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"targetRef"`
}

// isReady reports whether the endpoint is ready; where nobody says, it is.
func (e *endpoint) isReady() bool { return e.Conditions.Ready == nil || *e.Conditions.Ready }

// name is what the endpoint is known by in every slice: its pod, or else its address.
func (e *endpoint) name() string {
	switch {
	case e.TargetRef != nil:
		return "pod " + e.TargetRef.Namespace + "/" + e.TargetRef.Name
	case len(e.Addresses) > 0:
		return "address " + e.Addresses[0]
	}
	return ""
}

// ParseService reads a Service as it is named on a command line, NAMESPACE/NAME.
func ParseService(text string) (types.NamespacedName, error) {
	namespace, name, ok := strings.Cut(text, "/")
	if !ok || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1035Label(name)) > 0 {
		return types.NamespacedName{}, fmt.Errorf("%q is not the NAMESPACE/NAME of a Service", text)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}
