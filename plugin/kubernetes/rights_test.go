// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/admission-dispatcher/dispatcher/hook"
)

// authorizer is a cluster that lets users do what may says, and keeps what it was asked.
type authorizer struct {
	hook.Caller // for what is not asked

	may   func(do *authorizationv1.ResourceAttributes) bool
	fails func(do *authorizationv1.ResourceAttributes) bool
	why   authorizationv1.SubjectAccessReviewStatus
	asked []string
	users []authorizationv1.SubjectAccessReviewSpec
}

func (c *authorizer) Authorize(spec *authorizationv1.SubjectAccessReviewSpec, _ time.Time) (authorizationv1.SubjectAccessReviewStatus, error) {
	do := spec.ResourceAttributes
	c.users = append(c.users, *spec)
	c.asked = append(c.asked, strings.Join([]string{do.Verb, do.Group, do.Version, do.Resource, do.Subresource, do.Namespace, do.Name}, " "))
	if c.fails != nil && c.fails(do) {
		return authorizationv1.SubjectAccessReviewStatus{}, errors.New("it does not answer")
	}
	status := c.why
	status.Allowed = c.may != nil && c.may(do)
	return status, nil
}

func (c *authorizer) wasAsked(t *testing.T, want string) {
	t.Helper()
	if got := strings.Join(c.asked, "; "); got != want {
		t.Errorf("it was asked %q, want %q", got, want)
	}
}

// The cases of kube-apiserver's own tests of its three plugins about signers: which right a
// user has, and what is denied without it.
func TestK19Signers(t *testing.T) {
	const (
		requests = "certificates.k8s.io/certificatesigningrequests"
		bundles  = "certificates.k8s.io/clustertrustbundles"
	)
	of := func(signer, status string) string {
		return "{metadata: {name: web}, spec: {signerName: " + strconv.Quote(signer) + "}, status: {" + status + "}}"
	}
	approval := request{operation: "UPDATE", resource: requests, subresource: "approval", old: of("abc.com/xyz", ""), object: of("abc.com/xyz", "")}
	signing := request{operation: "UPDATE", resource: requests, subresource: "status", old: of("abc.com/xyz", ""), object: of("abc.com/xyz", "certificate: ZGF0YQ==")}
	with := func(q request, change func(q *request)) request { change(&q); return q }
	bundle := func(operation, signer, old string) request {
		q := request{operation: operation, resource: bundles, object: "{metadata: {name: web}, spec: {signerName: " + signer + "}}"}
		if old != "" {
			q.old = "{metadata: {name: web, labels: {a: b}}, spec: {signerName: " + old + "}}"
		}
		return q
	}
	const (
		noApproval = `403 certificatesigningrequests.certificates.k8s.io "web" is forbidden: user not permitted to approve requests with signerName "abc.com/xyz"`
		noSigning  = `403 certificatesigningrequests.certificates.k8s.io "web" is forbidden: user not permitted to sign requests with signerName "abc.com/xyz"`
		noAttest   = `403 clustertrustbundles.certificates.k8s.io "web" is forbidden: user not permitted to attest for signerName "abc.com/xyz"`
		broken     = "error: it does not answer"
		approve    = "approve certificates.k8s.io * signers   "
		sign       = "sign certificates.k8s.io * signers   "
		attest     = "attest certificates.k8s.io * signers   "
	)
	for name, row := range map[string]struct {
		plugin  string
		request request
		right   string // the name of the signers that the user has the right to use
		fails   string // the name about which the authorizer does not answer; * for any
		want    string
		asked   string
	}{
		"approval, of that signer":          {"CertificateApproval", approval, "abc.com/xyz", "", "allowed", approve + "abc.com/xyz"},
		"approval, of the domain":           {"CertificateApproval", approval, "abc.com/*", "", "allowed", approve + "abc.com/xyz; " + approve + "abc.com/*"},
		"approval, of another":              {"CertificateApproval", approval, "notabc.com/xyz", "", noApproval, approve + "abc.com/xyz; " + approve + "abc.com/*"},
		"approval, of everything":           {"CertificateApproval", approval, "*", "", noApproval, approve + "abc.com/xyz; " + approve + "abc.com/*"},
		"approval, no answer":               {"CertificateApproval", approval, "", "*", broken, approve + "abc.com/xyz; " + approve + "abc.com/*"},
		"approval, one answer":              {"CertificateApproval", approval, "abc.com/*", "abc.com/xyz", "allowed", approve + "abc.com/xyz; " + approve + "abc.com/*"},
		"approval, one answer that is no":   {"CertificateApproval", approval, "", "abc.com/xyz", broken, approve + "abc.com/xyz; " + approve + "abc.com/*"},
		"approval, with a signer of theirs": {"CertificateApproval", with(approval, func(q *request) { q.object = of("allowed.com/xyz", "") }), "allowed.com/xyz", "", noApproval, approve + "abc.com/xyz; " + approve + "abc.com/*"},
		"approval, of nothing":              {"CertificateApproval", with(approval, func(q *request) { q.old = "" }), "", "", "error: there is no CertificateSigningRequest in the review", ""},
		"the request itself":                {"CertificateApproval", with(approval, func(q *request) { q.subresource = "" }), "", "", "allowed", ""},
		"approval of something else":        {"CertificateApproval", with(approval, func(q *request) { q.resource = "example.com/certificatesigningrequests" }), "", "", "allowed", ""},
		"approval, created":                 {"CertificateApproval", with(approval, func(q *request) { q.operation = "CREATE" }), "", "", "allowed", ""},
		"signing, nothing changed":          {"CertificateSigning", with(signing, func(q *request) { q.old = q.object }), "", "*", "allowed", ""},
		"signing, of that signer":           {"CertificateSigning", signing, "abc.com/xyz", "", "allowed", sign + "abc.com/xyz"},
		"signing, of the domain":            {"CertificateSigning", signing, "abc.com/*", "", "allowed", sign + "abc.com/xyz; " + sign + "abc.com/*"},
		"signing, of another":               {"CertificateSigning", signing, "notabc.com/xyz", "", noSigning, sign + "abc.com/xyz; " + sign + "abc.com/*"},
		"signing, no answer":                {"CertificateSigning", signing, "", "*", broken, sign + "abc.com/xyz; " + sign + "abc.com/*"},
		"signing, a condition":              {"CertificateSigning", with(signing, func(q *request) { q.object = of("abc.com/xyz", "conditions: [{type: Failed}]") }), "", "", noSigning, sign + "abc.com/xyz; " + sign + "abc.com/*"},
		"signing, another certificate":      {"CertificateSigning", with(signing, func(q *request) { q.old = of("abc.com/xyz", "certificate: ZGF0ZQ==") }), "", "", noSigning, sign + "abc.com/xyz; " + sign + "abc.com/*"},
		"signing, with a signer of theirs":  {"CertificateSigning", with(signing, func(q *request) { q.object = of("allowed.com/xyz", "certificate: ZGF0YQ==") }), "allowed.com/xyz", "", noSigning, sign + "abc.com/xyz; " + sign + "abc.com/*"},
		"signing, of nothing":               {"CertificateSigning", with(signing, func(q *request) { q.old = "" }), "", "", "error: there is no CertificateSigningRequest in the review", ""},
		"signing, of nothing now":           {"CertificateSigning", with(signing, func(q *request) { q.object = "" }), "", "", "error: there is no CertificateSigningRequest in the review", ""},
		"the approval of a request":         {"CertificateSigning", with(signing, func(q *request) { q.subresource = "approval" }), "", "", "allowed", ""},
		"a bundle of that signer":           {"ClusterTrustBundleAttest", bundle("CREATE", "abc.com/xyz", ""), "abc.com/xyz", "", "allowed", attest + "abc.com/xyz"},
		"a bundle of the domain":            {"ClusterTrustBundleAttest", bundle("CREATE", "abc.com/xyz", ""), "abc.com/*", "", "allowed", attest + "abc.com/xyz; " + attest + "abc.com/*"},
		"a bundle of another":               {"ClusterTrustBundleAttest", bundle("CREATE", "abc.com/xyz", ""), "notabc.com/xyz", "", noAttest, attest + "abc.com/xyz; " + attest + "abc.com/*"},
		"a bundle, no answer":               {"ClusterTrustBundleAttest", bundle("CREATE", "abc.com/xyz", ""), "", "*", broken, attest + "abc.com/xyz; " + attest + "abc.com/*"},
		"a bundle, updated":                 {"ClusterTrustBundleAttest", bundle("UPDATE", "abc.com/xyz", "abc.com/xyz"), "", "", noAttest, attest + "abc.com/xyz; " + attest + "abc.com/*"},
		"a bundle, updated with the right":  {"ClusterTrustBundleAttest", bundle("UPDATE", "abc.com/xyz", "abc.com/xyz"), "abc.com/xyz", "", "allowed", attest + "abc.com/xyz"},
		"a bundle of nobody":                {"ClusterTrustBundleAttest", bundle("CREATE", `""`, ""), "", "", "allowed", ""},
		"a bundle of nobody, updated":       {"ClusterTrustBundleAttest", bundle("UPDATE", `""`, `""`), "", "", "allowed", ""},
		"a bundle that stays":               {"ClusterTrustBundleAttest", with(bundle("UPDATE", "abc.com/xyz", "abc.com/xyz"), func(q *request) { q.old = q.object }), "", "*", "allowed", ""},
		"a bundle with another owner": {"ClusterTrustBundleAttest", with(bundle("UPDATE", "abc.com/xyz", "abc.com/xyz"), func(q *request) {
			q.old = "{metadata: {name: web, ownerReferences: [{apiVersion: something}], finalizers: [a], managedFields: [{}]}, spec: {signerName: abc.com/xyz}}"
		}), "", "*", "allowed", ""},
		"a bundle, deleted":                  {"ClusterTrustBundleAttest", with(bundle("DELETE", "a", "abc.com/xyz"), func(q *request) { q.object = "" }), "", "", "allowed", ""},
		"no bundle":                          {"ClusterTrustBundleAttest", with(bundle("CREATE", "a", ""), func(q *request) { q.object = "" }), "", "", "error: there is no ClusterTrustBundle in the review", ""},
		"something else of the group":        {"ClusterTrustBundleAttest", with(bundle("CREATE", "a", ""), func(q *request) { q.resource = requests }), "", "", "allowed", ""},
		"a bundle that a user makes theirs ": {"ClusterTrustBundleAttest", bundle("UPDATE", "abc.com/xyz", "theirs.com/xyz"), "theirs.com/xyz", "", noAttest, attest + "abc.com/xyz; " + attest + "abc.com/*"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &authorizer{
				may:   func(do *authorizationv1.ResourceAttributes) bool { return do.Name == row.right },
				fails: func(do *authorizationv1.ResourceAttributes) bool { return row.fails == "*" || row.fails == do.Name },
			}
			row.request.caller = c
			configured(t, row.plugin, "").validate(row.request).says(t, row.want)
			c.wasAsked(t, row.asked)
		})
	}
	c := everything()
	c.why.EvaluationError = "a role is missing"
	approval.caller = c
	configured(t, "CertificateApproval", "").validate(approval).says(t, noApproval) // an allow beside an error is none for signers
	c.wasAsked(t, approve+"abc.com/xyz; "+approve+"abc.com/*")
}

// What a user is comes to the authorizer whole.
func TestAccessOfAUser(t *testing.T) {
	c := &authorizer{}
	configured(t, "PodNodeConstraints", "").validate(request{object: pod("", "nodeName: a"), user: "bob", groups: []string{"dev", "ops"}, caller: c})
	want := authorizationv1.SubjectAccessReviewSpec{User: "bob", Groups: []string{"dev", "ops"}, Extra: map[string]authorizationv1.ExtraValue{"scopes": {"read", "write"}}}
	for i := range c.users {
		c.users[i].ResourceAttributes = nil
	}
	if diff := cmp.Diff([]authorizationv1.SubjectAccessReviewSpec{want}, c.users); diff != "" {
		t.Errorf("wanted (-) and asked about (+):\n%s", diff)
	}
	nobody := request{object: pod("", "nodeName: a")}
	configured(t, "PodNodeConstraints", "").validate(nobody).says(t, "error: nothing is known of the cluster")
}

// The cases of OpenShift's own tests, with its order of labels made sure.
func TestK19PodNodeConstraints(t *testing.T) {
	const only = ` is forbidden: node selection by %K is prohibited by policy for your role`
	template := func(spec string) string { return "{metadata: {name: web}, spec: {template: {spec: {" + spec + "}}}}" }
	const bogus, both, named = "nodeSelector: {bogus: frank}", "nodeName: frank, nodeSelector: {other: b, zebra: c, bogus: frank}", "nodeName: frank"
	const configuration = "{apiVersion: v1, kind: PodNodeConstraintsConfig, nodeSelectorLabelBlacklist: [bogus, zebra]}"
	for name, row := range map[string]struct {
		request request
		may     bool
		want    string // what is prohibited
		asked   string
	}{
		"nothing":               {request{object: pod("", "")}, false, "", ""},
		"another label":         {request{object: pod("", "nodeSelector: {other: frank}")}, false, "", ""},
		"a label":               {request{object: pod("", bogus)}, false, "label(s) [bogus]", "create   pods binding shop web"},
		"a name":                {request{object: pod("", named)}, false, "nodeName", "create   pods binding shop web"},
		"a name and labels":     {request{object: pod("", both)}, false, "nodeName and label(s) [bogus zebra]", "create   pods binding shop web"},
		"a label, with right":   {request{object: pod("", bogus)}, true, "", "create   pods binding shop web"},
		"a name, with right":    {request{object: pod("", named)}, true, "", "create   pods binding shop web"},
		"an updated pod":        {request{operation: "UPDATE", object: pod("", named)}, false, "", ""},
		"a deleted pod":         {request{operation: "DELETE", old: pod("", named)}, false, "", ""},
		"a subresource":         {request{subresource: "binding", object: pod("", named)}, false, "", ""},
		"a quota":               {request{resource: "resourcequotas", object: template(bogus)}, false, "", ""},
		"a controller":          {request{resource: "replicationcontrollers", object: template(bogus)}, false, "label(s) [bogus]", "create   pods binding shop "},
		"a controller, updated": {request{operation: "UPDATE", resource: "replicationcontrollers", object: template(bogus)}, false, "label(s) [bogus]", "create   pods binding shop "},
		"one without template":  {request{resource: "replicationcontrollers", object: "{}"}, false, "", ""},
		"a deployment":          {request{resource: "apps/deployments", object: template(bogus)}, false, "label(s) [bogus]", "create   pods binding shop "},
		"its scale":             {request{operation: "UPDATE", resource: "apps/deployments", subresource: "scale", object: template(bogus)}, false, "", ""},
		"a daemon set":          {request{resource: "apps/daemonsets", object: template(bogus)}, false, "", ""},
		"a stateful set":        {request{resource: "apps/statefulsets", object: template("")}, false, "", ""},
		"a job":                 {request{resource: "batch/jobs", object: template(bogus)}, false, "label(s) [bogus]", "create   pods binding shop "},
		"a template":            {request{resource: "podtemplates", object: "{metadata: {name: web}, template: {spec: {" + bogus + "}}}"}, false, "label(s) [bogus]", "create   pods binding shop "},
		"a configuration":       {request{resource: "apps.openshift.io/deploymentconfigs", object: template(bogus)}, false, "label(s) [bogus]", "create   pods binding shop "},
		"one without":           {request{resource: "apps.openshift.io/deploymentconfigs", object: "{}"}, false, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := &authorizer{may: func(*authorizationv1.ResourceAttributes) bool { return row.may }}
			row.request.caller = c
			want := "allowed"
			if row.want != "" {
				group, resource, _ := cutLast(row.request.resource)
				if resource == "" {
					resource = "pods"
				}
				if group != "" {
					resource += "." + group
				}
				want = "403 " + resource + ` "web"` + strings.Replace(only, "%K", row.want, 1)
			}
			configured(t, "PodNodeConstraints", configuration).validate(row.request).says(t, want)
			c.wasAsked(t, row.asked)
		})
	}
	host := request{object: pod("", "nodeSelector: {kubernetes.io/hostname: a}"), caller: &authorizer{}}
	const denied = `403 pods "web" is forbidden: node selection by label(s) [kubernetes.io/hostname] is prohibited by policy for your role`
	configured(t, "PodNodeConstraints", "").validate(host).says(t, denied)
	configured(t, "PodNodeConstraints", "{nodeSelectorLabelBlacklist: []}").validate(host).says(t, "allowed")
	broken := request{object: pod("", named), caller: &authorizer{fails: func(*authorizationv1.ResourceAttributes) bool { return true }}}
	configured(t, "PodNodeConstraints", "").validate(broken).says(t, "error: it does not answer")
	if _, problems := configure(t, "PodNodeConstraints", "{apiVersion: v2, kind: Constraints}"); !strings.Contains(problems, `apiVersion: Unsupported value: "v2"`) || !strings.Contains(problems, `kind: Unsupported value`) {
		t.Error(problems)
	}
}
