// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// expiresSoon is how long before its end a certificate is worth a Warning.
const expiresSoon = 30 * 24 * time.Hour

// defects is W7.
func (l *linter) defects() {
	for i := range l.Configurations {
		if l.Configurations[i].Beta && !l.Registry { // the dispatcher reads it
			l.reportAll(i, Warning, "v1beta1", "was removed from Kubernetes in 1.22: write it as admissionregistration.k8s.io/v1")
		}
	}
	l.each(func(w *webhook) {
		if s := or(w.SideEffects, admissionregistrationv1.SideEffectClassUnknown); s == admissionregistrationv1.SideEffectClassSome || s == admissionregistrationv1.SideEffectClassUnknown {
			l.report(w, Warning, w.at.Child("sideEffects"), string(s), "every dry run that the webhook selects is denied")
		}
		if !l.Registry { // those of the registry are looked at where they are used
			l.service(w)
			l.bundle(w)
		}
	})
}

// service looks whether anybody answers.
func (l *linter) service(w *webhook) {
	reference := w.ClientConfig.Service
	if reference == nil || l.Services == nil {
		return
	}
	level := Warning
	if w.fails {
		level = Error
	}
	name := ServiceName{reference.Namespace, reference.Name}
	at := w.at.Child("clientConfig", "service")
	switch s, ok := l.Services[name]; {
	case !ok:
		l.report(w, level, at, name.Namespace+"/"+name.Name, "is not there: remove the webhook, or bring its Service back")
	case s.Counted && s.Ready == 0:
		l.report(w, level, at, name.Namespace+"/"+name.Name, "has no ready endpoint: start the webhook, or remove it")
	}
}

func (l *linter) bundle(w *webhook) {
	at, rest := w.at.Child("clientConfig", "caBundle"), w.ClientConfig.CABundle
	if l.Now.IsZero() {
		return
	}
	var latest time.Time // one that is good is enough
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && c.NotAfter.After(latest) {
			latest = c.NotAfter
		}
	}
	text := latest.UTC().Format(time.RFC3339)
	switch {
	case latest.IsZero():
	case l.Now.After(latest):
		l.report(w, Error, at, "", fmt.Sprintf("expired at %s: every call fails; renew it", text))
	case l.Now.Add(expiresSoon).After(latest):
		l.report(w, Warning, at, "", fmt.Sprintf("expires at %s: renew it", text))
	}
}
