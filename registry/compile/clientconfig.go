// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/transport"
)

// validateClientConfig checks the form of where a webhook is served, with
// kube-apiserver's words (k8s.io/apiserver/pkg/util/webhook/validation.go) and
// the ports besides (E1).
func validateClientConfig(c *admissionregistrationv1.WebhookClientConfig, at *field.Path) field.ErrorList {
	switch {
	case (c.URL == nil) == (c.Service == nil):
		return field.ErrorList{field.Required(at, "exactly one of url or service is required")}
	case c.URL != nil:
		return validateURL(*c.URL, at.Child("url"))
	}
	return validateService(c.Service, at.Child("service"))
}

const urlForm = "; desired format: https://host[/path]"

func validateURL(raw string, at *field.Path) field.ErrorList {
	u, err := url.Parse(raw)
	if err != nil {
		// Neither the URL nor its parser's words: both may hold a password.
		return field.ErrorList{field.Required(at, "url must be a valid URL"+urlForm)}
	}
	var errs field.ErrorList
	if u.Scheme != "https" {
		errs = append(errs, field.Invalid(at, u.Scheme, "'https' is the only allowed URL scheme"+urlForm))
	}
	if u.Hostname() == "" {
		errs = append(errs, field.Invalid(at, u.Host, "host must be specified"+urlForm))
	}
	if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
		errs = append(errs, validatePort(port, u.Host, at)...)
	}
	if u.User != nil {
		errs = append(errs, field.Invalid(at, "", "user information is not permitted in the URL"))
	}
	if u.Fragment != "" || strings.Contains(raw, "#") {
		errs = append(errs, field.Invalid(at, "", "fragments are not permitted in the URL"))
	}
	if u.RawQuery != "" || u.ForceQuery {
		errs = append(errs, field.Invalid(at, "", "query parameters are not permitted in the URL"))
	}
	return errs
}

func validatePort(port, shown string, at *field.Path) field.ErrorList {
	n, err := strconv.Atoi(port)
	if err != nil {
		return field.ErrorList{field.Invalid(at, shown, "port is not valid: must be a number")}
	}
	if reasons := utilvalidation.IsValidPortNum(n); len(reasons) > 0 {
		return field.ErrorList{field.Invalid(at, shown, "port is not valid: "+strings.Join(reasons, ", "))}
	}
	return nil
}

func validateService(s *admissionregistrationv1.ServiceReference, at *field.Path) field.ErrorList {
	errs := validateServiceName(s.Name, at.Child("name"))
	errs = append(errs, validateServiceName(s.Namespace, at.Child("namespace"))...)
	if reasons := utilvalidation.IsValidPortNum(int(*s.Port)); len(reasons) > 0 {
		errs = append(errs, field.Invalid(at.Child("port"), *s.Port, "port is not valid: "+strings.Join(reasons, ", ")))
	}
	if s.Path != nil {
		errs = append(errs, validateServicePath(*s.Path, at.Child("path"))...)
	}
	return errs
}

// validateServiceName is stricter than kube-apiserver, which looks the Service
// up: we make a host name of it.
func validateServiceName(name string, at *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	var errs field.ErrorList
	for _, reason := range utilvalidation.IsDNS1123Label(name) {
		errs = append(errs, field.Invalid(at, name, reason))
	}
	return errs
}

func validateServicePath(path string, at *field.Path) field.ErrorList {
	if path == "" || path == "/" {
		return nil
	}
	if !strings.HasPrefix(path, "/") {
		return field.ErrorList{field.Invalid(at, path, "must start with a '/'")}
	}
	var errs field.ErrorList
	for i, segment := range strings.Split(strings.TrimSuffix(path[1:], "/"), "/") {
		if segment == "" {
			errs = append(errs, field.Invalid(at, path, fmt.Sprintf("segment[%d] may not be empty", i)))
			continue
		}
		for _, reason := range utilvalidation.IsDNS1123Subdomain(segment) {
			errs = append(errs, field.Invalid(at, path, fmt.Sprintf("segment[%d]: %s", i, reason)))
		}
	}
	return errs
}

// address is where a valid clientConfig points.
func address(c *admissionregistrationv1.WebhookClientConfig) (rawURL, serverName string) {
	if c.URL != nil {
		return *c.URL, ""
	}
	s := c.Service
	path := ""
	if s.Path != nil {
		path = *s.Path
	}
	host := s.Name + "." + s.Namespace + ".svc"
	return fmt.Sprintf("https://%s:%d%s", host, *s.Port, path), host
}

// forbidden returns why a literal host may not be dialled (E2). A name that
// needs DNS is judged when it is dialled.
func forbidden(host, port string, policy transport.AddressPolicy) error {
	addr, ok := transport.ParseHost(host)
	if !ok {
		return nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		n = 443
	}
	return policy.Check(netip.AddrPortFrom(addr, uint16(n)))
}

// validateDestination applies the address policy to a valid clientConfig.
func validateDestination(c *admissionregistrationv1.WebhookClientConfig, policy transport.AddressPolicy, at *field.Path) field.ErrorList {
	if c.URL == nil {
		return nil
	}
	u, err := url.Parse(*c.URL)
	if err != nil {
		return nil
	}
	if err := forbidden(u.Hostname(), u.Port(), policy); err != nil {
		return field.ErrorList{field.Invalid(at.Child("url"), u.Host, err.Error())}
	}
	return nil
}

// splitAddress checks host:port of an endpoint.
func splitAddress(address string, at *field.Path) (host, port string, errs field.ErrorList) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" {
		return "", "", field.ErrorList{field.Invalid(at, address, "must be host:port")}
	}
	return host, port, validatePort(port, address, at)
}
