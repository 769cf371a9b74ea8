// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// services is how the Services of a cluster are reached: the first route that names one.
type services []serviceRoute

type serviceRoute struct {
	globs     []string // on namespace/name
	endpoints endpoints
}

// endpointsField is the row of bindingFields that says where a webhook is dialled.
var endpointsField = slices.IndexFunc(bindingFields[:], func(f bindingField) bool { return f.name == "endpoints" })

// servicesOf compiles routes. One that is not valid is a problem already.
func servicesOf(routes []v1alpha1.ServiceRoute) (s services) {
	for i := range routes {
		r := &routes[i]
		addresses := r.Endpoints
		if r.Gateway != "" {
			addresses = []string{r.Gateway}
		}
		specs := make([]transport.EndpointSpec, len(addresses))
		for j, address := range addresses {
			specs[j].Address = address // the server's name is that of the Service
		}
		s = append(s, serviceRoute{r.Names, endpoints{&specs}})
	}
	return s
}

// of returns where a Service is dialled; ok is false if no route names it.
func (s services) of(namespace, name string) (at endpoints, ok bool) {
	for i := range s {
		for _, glob := range s[i].globs {
			if matches, err := path.Match(glob, namespace+"/"+name); matches && err == nil {
				return s[i].endpoints, true
			}
		}
	}
	return endpoints{}, false
}

// The bounds of Cluster.spec.services, and of hosts of Cluster.spec.mirror.
const (
	maxRoutes    = 64
	maxNames     = 64
	maxAddresses = 64
	maxHosts     = 64
)

var (
	serviceGlob = regexp.MustCompile(`^[-a-z0-9*?]{1,63}/[-a-z0-9*?]{1,63}$`)
	mirrorHost  = regexp.MustCompile(`^([*][.])?[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]{1,5})?$`)
)

func validateServices(routes []v1alpha1.ServiceRoute, policy transport.AddressPolicy, at *field.Path) field.ErrorList {
	if len(routes) > maxRoutes {
		return field.ErrorList{field.TooMany(at, len(routes), maxRoutes)}
	}
	var errs field.ErrorList
	for i := range routes {
		errs = append(errs, validateRoute(&routes[i], policy, at.Index(i))...)
	}
	return errs
}

func validateRoute(r *v1alpha1.ServiceRoute, policy transport.AddressPolicy, at *field.Path) field.ErrorList {
	switch {
	case len(r.Names) == 0:
		return field.ErrorList{field.Required(at.Child("names"), "at least one glob of the form namespace/name")}
	case len(r.Names) > maxNames:
		return field.ErrorList{field.TooMany(at.Child("names"), len(r.Names), maxNames)}
	case (r.Gateway != "") == (len(r.Endpoints) > 0):
		return field.ErrorList{field.Required(at, "exactly one of gateway or endpoints is required")}
	case len(r.Endpoints) > maxAddresses:
		return field.ErrorList{field.TooMany(at.Child("endpoints"), len(r.Endpoints), maxAddresses)}
	}
	var errs field.ErrorList
	for i, glob := range r.Names {
		if !serviceGlob.MatchString(glob) {
			errs = append(errs, field.Invalid(at.Child("names").Index(i), glob, "must have the form namespace/name; \"*/*\" is every Service"))
		}
	}
	if r.Gateway != "" {
		return append(errs, validateAddress(r.Gateway, policy, at.Child("gateway"))...)
	}
	if len(r.Names) > 1 || strings.ContainsAny(r.Names[0], "*?") {
		errs = append(errs, field.Invalid(at.Child("names"), r.Names, "endpoints are those of one Service: name it alone, or use a gateway"))
	}
	for i, address := range r.Endpoints {
		errs = append(errs, validateAddress(address, policy, at.Child("endpoints").Index(i))...)
	}
	return errs
}

func validateAddress(address string, policy transport.AddressPolicy, at *field.Path) field.ErrorList {
	host, port, errs := splitAddress(address, at)
	if len(errs) > 0 {
		return errs
	}
	if err := forbidden(host, port, policy); err != nil {
		return field.ErrorList{field.Invalid(at, address, err.Error())}
	}
	return nil
}

func validateMirror(s *v1alpha1.ClusterSpec, at *field.Path) field.ErrorList {
	if s.Mirror == nil {
		return nil
	}
	var errs field.ErrorList
	if s.KubeconfigFile == "" {
		errs = append(errs, field.Invalid(at, "", "needs a kubeconfig: the configurations are read from the API of the cluster"))
	}
	if n := len(s.Mirror.Hosts); n > maxHosts {
		return append(errs, field.TooMany(at.Child("hosts"), n, maxHosts))
	}
	for i, host := range s.Mirror.Hosts {
		if !mirrorHost.MatchString(host) {
			errs = append(errs, field.Invalid(at.Child("hosts").Index(i), host, "must be host or host:port, in lower case; *.example.com is every host one label below"))
		}
	}
	return errs
}

// unreached is a Service that nothing says how to reach, of a configuration.
type unreached struct{ configuration, service string }

// reached adds to a dispatch where the webhook's Service is dialled in the group's
// clusters (E23). Endpoints of a binding come first. A Service of a configuration of one
// cluster is one of that cluster, so nobody's DNS has it.
func (t *chains) reached(e *entry, d dispatch, g *group) dispatch {
	if e.policy != nil || e.spec.ClientConfig.Service == nil || d[endpointsField] != nil {
		return d
	}
	s := e.spec.ClientConfig.Service
	at, ok := g.services.of(s.Namespace, s.Name)
	if ok {
		d[endpointsField] = at
		return d
	}
	key := unreached{e.configuration.Object, s.Namespace + "/" + s.Name}
	if e.configuration.Cluster != "" && !t.unreached[key] {
		t.unreached[key] = true
		t.problem(e.configuration.Problem(e.path.Child("clientConfig", "service"), key.service, fmt.Sprintf(
			"is a Service of cluster %[1]s, and nothing says how it is reached from here: name it in spec.services of Cluster/%[1]s, with a gateway or its endpoints, "+
				"or set endpoints in a WebhookBinding of %[2]s", g.alone, e.name())))
	}
	return d
}

// clustersOf returns the names of the clusters that have configurations of their own.
func clustersOf(all [2][]*entry) map[string]bool {
	names := map[string]bool{}
	for _, phase := range []chain.Phase{chain.Validating, chain.Mutating} {
		for _, e := range all[phase] {
			if e.configuration.Cluster != "" {
				names[e.configuration.Cluster] = true
			}
		}
	}
	return names
}

// lintClusters warns about configurations of clusters that are not there.
func lintClusters(o *manifest.Objects, d *diagnostics) {
	names := namesOfClusters(o.Clusters)
	for i := range o.Configurations {
		if c := &o.Configurations[i]; c.Cluster != "" && !names[c.Cluster] {
			d.warn(c.Problem(field.NewPath("metadata", "annotations").Key(manifest.ClusterAnnotation), c.Cluster, "there is no such Cluster: its webhooks serve none"))
		}
	}
}
