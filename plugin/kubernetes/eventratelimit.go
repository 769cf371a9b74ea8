// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/plugin"
)

// EventRateLimit denies Events beyond some rate, with code 429. Every cluster has buckets of
// its own, and so has every dispatcher: N of them let N times as many pass.
func EventRateLimit() plugin.Plugin {
	return plugin.New("EventRateLimit", []admissionregistrationv1.RuleWithOperations{plugin.Rule("", "v1", []string{"events"}, "CREATE", "UPDATE")}, func(c *eventConfiguration) (any, field.ErrorList) {
		if errs := c.validate(); len(errs) > 0 {
			return nil, errs
		}
		return &eventLimits{limits: c.Limits, clusters: map[string][]*buckets{}}, nil
	})
}

// eventConfiguration is a Configuration of eventratelimit.admission.k8s.io/v1alpha1.
type eventConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	Limits []eventLimit `json:"limits"`
}

// eventLimit is one limit: qps events a second, and up to burst at once, for each key of its
// type. cacheSize is how many keys are remembered.
type eventLimit struct {
	Type      string `json:"type"`
	QPS       int32  `json:"qps"`
	Burst     int32  `json:"burst"`
	CacheSize int32  `json:"cacheSize,omitempty"`
}

// The types of limits.
const (
	serverLimit          = "Server"
	namespaceLimit       = "Namespace"
	userLimit            = "User"
	sourceAndObjectLimit = "SourceAndObject"

	defaultCacheSize = 4096
	// maxCacheSize bounds what one limit remembers of one cluster, some 300 B for each.
	maxCacheSize = 1 << 20
)

var limitTypes = []string{namespaceLimit, serverLimit, sourceAndObjectLimit, userLimit}

const eventVersion = "eventratelimit.admission.k8s.io/v1alpha1"

func (c *eventConfiguration) validate() (errs field.ErrorList) {
	errs = validateType(c.TypeMeta, "Configuration", eventVersion)
	if len(c.Limits) == 0 {
		errs = append(errs, field.Invalid(field.NewPath("limits"), field.OmitValueType{}, "must not be empty"))
	}
	for i, l := range c.Limits {
		at := field.NewPath("limits").Index(i)
		if !slices.Contains(limitTypes, l.Type) {
			errs = append(errs, field.NotSupported(at.Child("type"), l.Type, limitTypes))
		}
		if l.Burst <= 0 {
			errs = append(errs, field.Invalid(at.Child("burst"), l.Burst, "must be positive"))
		}
		if l.QPS <= 0 {
			errs = append(errs, field.Invalid(at.Child("qps"), l.QPS, "must be positive"))
		}
		if l.Type == serverLimit {
			continue
		}
		if l.CacheSize < 0 {
			errs = append(errs, field.Invalid(at.Child("cacheSize"), l.CacheSize, "must not be negative"))
		}
		if l.CacheSize > maxCacheSize {
			errs = append(errs, field.Invalid(at.Child("cacheSize"), l.CacheSize, "must be at most 1048576"))
		}
	}
	return errs
}

// eventLimits is the plugin.
type eventLimits struct {
	limits []eventLimit

	mu       sync.Mutex
	clusters map[string][]*buckets // by limit
}

func (l *eventLimits) Validate(_ context.Context, a *plugin.Attributes) (plugin.Answer, error) {
	if a.Kind().Group != "" || a.Kind().Kind != "Event" || a.DryRun() {
		return plugin.Answer{}, nil
	}
	var exceeded []error
	for i, b := range l.of(a.Cluster()) {
		key, err := eventKey(a, l.limits[i].Type)
		if err != nil {
			return plugin.Answer{}, err
		}
		if !b.take(key, time.Now()) {
			exceeded = append(exceeded, errors.New("limit reached on type "+l.limits[i].Type+" for key "+key))
		}
	}
	if len(exceeded) == 0 {
		return plugin.Answer{}, nil
	}
	status := apierrors.NewTooManyRequestsError(utilerrors.NewAggregate(exceeded).Error()).Status()
	return plugin.Answer{Denied: &status}, nil
}

// of returns the buckets of a cluster, of which there are as many as Clusters call.
func (l *eventLimits) of(cluster string) []*buckets {
	l.mu.Lock()
	defer l.mu.Unlock()
	list, ok := l.clusters[cluster]
	if !ok {
		for _, limit := range l.limits {
			list = append(list, newBuckets(limit))
		}
		l.clusters[cluster] = list
	}
	return list
}

// eventKey is what a limit of this type counts by.
func eventKey(a *plugin.Attributes, limit string) (string, error) {
	switch limit {
	case namespaceLimit:
		return a.Namespace(), nil
	case userLimit:
		return a.User().Username, nil
	case sourceAndObjectLimit:
		event, err := plugin.Decode[corev1.Event](a.Object())
		if err != nil || event == nil {
			return "", err
		}
		o := &event.InvolvedObject
		return strings.Join([]string{event.Source.Component, event.Source.Host, o.Kind, o.Namespace, o.Name, string(o.UID), o.APIVersion}, ""), nil
	}
	return "", nil
}
