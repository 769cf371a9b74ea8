// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/registration"
)

// registrationName is what both objects are called.
const registrationName = "admission-dispatcher"

// The reasons of RegistrationCurrent.
const (
	reasonCurrent       = "Current"
	reasonStale         = "Stale"         // it differs
	reasonNotRegistered = "NotRegistered" // it is not there
	reasonForeign       = "Foreign"       // others are in it
	reasonImpossible    = "Impossible"    // an API server would not take what would be printed
	reasonNoKubeconfig  = "NoKubeconfig"
	reasonNoURL         = "NoURL"
	reasonForbidden     = "Forbidden"
	reasonUnreachable   = "Unreachable"
	reasonReverted      = "Reverted" // somebody changes it back
)

// verdict is what there is to say of a cluster's registration.
type verdict struct {
	status          metav1.ConditionStatus
	reason, message string
	// applied says that the cluster has been changed, failed that it could not be looked at.
	applied, failed bool
	diff            []string // what would be applied, when only a dry run was made
}

func unknown(reason, message string) verdict {
	return verdict{status: metav1.ConditionUnknown, reason: reason, message: message, failed: true}
}

// look is one look at the registration of a cluster.
type look struct {
	cluster    *chain.Cluster
	kubeconfig []byte
	options    registration.Options
	unset      error // why there are no options; nil: there are
	allowed    func(netip.AddrPort) error
	apply      bool // the Cluster and the controller let it be applied, and all replicas serve it
	dryRun     bool // the Cluster does, and the controller does not
}

// take looks, and applies what it may.
func (l *look) take(ctx context.Context) verdict {
	switch {
	case l.unset != nil:
		return verdict{status: metav1.ConditionUnknown, reason: reasonNoURL, message: l.unset.Error()}
	case l.kubeconfig == nil:
		return verdict{status: metav1.ConditionUnknown, reason: reasonNoKubeconfig, message: "the Cluster has no kubeconfigSecretRef: nobody can look"}
	}
	made, err := registration.New(l.cluster, l.options)
	if err != nil {
		return verdict{status: metav1.ConditionFalse, reason: reasonImpossible, message: err.Error()}
	}
	c, err := newCaller(l.kubeconfig, l.allowed)
	if err != nil {
		return unknown(reasonUnreachable, err.Error())
	}
	defer c.close()
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	parts := partsOf(&made)
	for i := range parts {
		if err := parts[i].compare(ctx, c); err != nil {
			return l.failure(err)
		}
	}
	if foreign := foreigners(parts); foreign != "" {
		return verdict{status: metav1.ConditionFalse, reason: reasonForeign,
			message: foreign + " named " + registrationName + " has webhooks of others: move them to an object of another name. It is not changed"}
	}
	v := verdict{}
	private := arePrivate(parts)
	if private {
		l.apply, l.dryRun = false, false
	}
	if l.apply || l.dryRun {
		for i := range parts {
			p := &parts[i]
			if p.wants == nil || len(p.found) == 0 {
				continue
			}
			if err := p.apply(ctx, c, l.dryRun); err != nil {
				return l.failure(fmt.Errorf("apply: %w", err))
			}
			v.applied = v.applied || !l.dryRun
			if l.dryRun {
				v.diff = append(v.diff, p.found...)
			}
		}
	}
	v = l.conclude(parts, v)
	if private && v.status == metav1.ConditionFalse {
		v.message += " with --path-secret-file or --service: the controller does not know by which secret or Service the cluster calls, and leaves it alone"
	}
	return v
}

// conclude puts what was found of both objects together.
func (l *look) conclude(parts []part, v verdict) verdict {
	var found, added []string
	missing := 0
	for i := range parts {
		p := &parts[i]
		added = append(added, p.added...)
		for _, f := range p.found {
			found = append(found, p.phase+": "+f)
		}
		if p.wants != nil && p.has == nil {
			missing++
		}
	}
	switch {
	case len(found) == 0:
		v.status, v.reason, v.message = metav1.ConditionTrue, reasonCurrent, "the cluster calls for what its webhooks and policies select"
		if len(added) > 0 {
			v.message += "; left as an enforcer of its cloud made it: namespaceSelector " + joined(added)
		}
		return v
	case missing > 0 && missing == wanted(parts):
		v.reason = reasonNotRegistered
	default:
		v.reason = reasonStale
	}
	v.status, v.message = metav1.ConditionFalse, joined(found)+". "+l.remedy(arePrivate(parts))
	return v
}

func (l *look) remedy(private bool) string {
	switch {
	case l.apply:
		return "It was applied, and is not what was applied"
	case l.dryRun:
		return "A dry run succeeded: start the controller with --dry-run=false, or apply what \"dispatcher registration\" prints"
	case l.cluster.Registration == v1alpha1.RegistrationApply && !private:
		return "It is applied when all ready replicas serve it"
	}
	return "Apply what \"dispatcher registration\" prints"
}

// failure is what is said when the API of the cluster does not do what it is asked.
func (l *look) failure(err error) verdict {
	r, ok := errors.AsType[*refusal](err)
	switch {
	case !ok:
		return unknown(reasonUnreachable, err.Error())
	case r.code == http.StatusForbidden || r.code == http.StatusUnauthorized:
		return unknown(reasonForbidden, err.Error()+". Apply what \"dispatcher registration --rbac\" prints")
	}
	return unknown(reasonUnreachable, err.Error())
}

func arePrivate(parts []part) bool {
	return slices.ContainsFunc(parts, func(p part) bool { return p.private })
}

func foreigners(parts []part) string {
	for i := range parts {
		if !parts[i].ours {
			return parts[i].resource
		}
	}
	return ""
}

func wanted(parts []part) (n int) {
	for i := range parts {
		if parts[i].wants != nil {
			n++
		}
	}
	return n
}

// The bounds of what is shown of differences.
const (
	maxShown     = 8
	maxShownText = 160 // bytes of each
)

// joined shows a list in one line.
func joined(list []string) string {
	var b bytes.Buffer
	for i, text := range list {
		if i == maxShown {
			fmt.Fprintf(&b, ", and %d more", len(list)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(oneLine(text, maxShownText))
	}
	return b.String()
}

// oneLine makes text one printable line of at most most bytes.
func oneLine(text string, most int) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}
