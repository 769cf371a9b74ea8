// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/plugin"
)

// ExternalIPRanger denies Services with external IPs outside of some networks, such as
// those of the cluster's own pods and nodes. It is OpenShift's.
func ExternalIPRanger() plugin.Plugin {
	rules := []admissionregistrationv1.RuleWithOperations{plugin.Rule("", "v1", []string{"services"}, "CREATE", "UPDATE")}
	return plugin.New("ExternalIPRanger", rules, func(c *externalIPConfiguration) (any, field.ErrorList) { return c.ranger() })
}

// externalIPConfiguration is OpenShift's ExternalIPRangerAdmissionConfig.
type externalIPConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// Networks in which external IPs may be, or with an exclamation mark in front may not
	// be. Those that are refused come first; with none that are allowed all others are.
	// Without any network there are no external IPs.
	Networks []string `json:"externalIPNetworkCIDRs"`
	// AllowIngressIP allows the first address of the load balancer, as it is stored.
	AllowIngressIP bool `json:"allowIngressIP"`
}

func (c *externalIPConfiguration) ranger() (*externalIPRanger, field.ErrorList) {
	errs := validateType(c.TypeMeta, "ExternalIPRangerAdmissionConfig", "v1", "network.openshift.io/v1")
	r := &externalIPRanger{ingress: c.AllowIngressIP}
	for i, text := range c.Networks {
		network, refused := strings.CutPrefix(text, "!")
		prefix, err := netip.ParsePrefix(network)
		switch {
		case err != nil || prefix.Addr().Is4In6():
			errs = append(errs, field.Invalid(field.NewPath("externalIPNetworkCIDRs").Index(i), text, "must be a CIDR such as 192.0.2.0/24, or !192.0.2.0/24"))
		case refused:
			r.refused = append(r.refused, prefix.Masked())
		default:
			r.allowed = append(r.allowed, prefix.Masked())
		}
	}
	return r, errs
}

type externalIPRanger struct {
	allowed, refused []netip.Prefix
	ingress          bool
}

func (r *externalIPRanger) Validate(_ context.Context, a *plugin.Attributes) (plugin.Answer, error) {
	if o := a.Operation(); !a.Is("", "services") || o != admissionv1.Create && o != admissionv1.Update {
		return plugin.Answer{}, nil
	}
	service, err := plugin.Decode[corev1.Service](a.Object())
	if err != nil {
		return plugin.Answer{}, err
	}
	if service == nil {
		return plugin.Answer{}, missing("Service")
	}
	if len(service.Spec.ExternalIPs) == 0 {
		return plugin.Answer{}, nil
	}
	ingress, err := r.ingressIP(a, service)
	if err != nil {
		return plugin.Answer{}, err
	}
	if errs := r.check(service.Spec.ExternalIPs, ingress); len(errs) > 0 {
		return a.Forbid("%w", errs.ToAggregate()), nil
	}
	return plugin.Answer{}, nil
}

// check returns what is wrong with a Service's external IPs.
func (r *externalIPRanger) check(ips []string, ingress string) (errs field.ErrorList) {
	at := field.NewPath("spec", "externalIPs")
	if len(r.allowed)+len(r.refused) == 0 {
		if len(ips) == 1 && ips[0] == ingress {
			return nil
		}
		return field.ErrorList{field.Forbidden(at, "externalIPs have been disabled")}
	}
	for i, text := range ips[:min(len(ips), maxExternalIPs)] {
		ip, err := netip.ParseAddr(text)
		switch {
		case err != nil || ip.Zone() != "":
			errs = append(errs, field.Forbidden(at.Index(i), "externalIPs must be a valid address"))
		case text != ingress && !r.allows(ip.Unmap()):
			errs = append(errs, field.Forbidden(at.Index(i), "externalIP is not allowed"))
		}
	}
	if len(ips) > maxExternalIPs {
		errs = append(errs, field.TooMany(at, len(ips), maxExternalIPs))
	}
	return errs
}

// maxExternalIPs bounds the work on one Service, of which each IP is compared with each
// network.
const maxExternalIPs = 1000

func (r *externalIPRanger) allows(ip netip.Addr) bool {
	contains := func(network netip.Prefix) bool { return network.Contains(ip) }
	return !slices.ContainsFunc(r.refused, contains) && (len(r.allowed) == 0 || slices.ContainsFunc(r.allowed, contains))
}

// ingressIP is the address that the Service has got from its load balancer, of which there is
// none while it is created; "": none that counts. An address that a user claims does not.
func (r *externalIPRanger) ingressIP(a *plugin.Attributes, service *corev1.Service) (string, error) {
	if !r.ingress || service.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return "", nil
	}
	old, err := plugin.Decode[corev1.Service](a.OldObject())
	if err != nil || old == nil || len(old.Status.LoadBalancer.Ingress) == 0 {
		return "", err
	}
	return old.Status.LoadBalancer.Ingress[0].IP, nil
}
