// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// without is the authorizer of kube-apiserver's own tests: it lets the user do all but
// delete and finalize a resource, or any.
func without(resource string) *authorizer {
	return &authorizer{may: func(do *authorizationv1.ResourceAttributes) bool {
		mine := resource == "*" || do.Resource == resource
		return do.Resource != "*" && (!mine || do.Verb != "delete" && (do.Verb != "update" || do.Subresource != "finalizers"))
	}}
}

func everything() *authorizer {
	return &authorizer{may: func(*authorizationv1.ResourceAttributes) bool { return true }}
}

// owned is an object with owners, in YAML.
func owned(refs ...string) string {
	return "{metadata: {name: web, ownerReferences: [" + strings.Join(refs, ", ") + "]}}"
}

// The cases of kube-apiserver's own tests: who may change owners.
func TestK18Owners(t *testing.T) {
	const denied = `403 %s "web" is forbidden: cannot set an ownerRef on a resource you can't delete: , <nil>`
	const first, second = "{name: first}", "{name: second}"
	for name, row := range map[string]struct {
		who       *authorizer
		resource  string
		old, now  []string
		operation string
		denied    bool
	}{
		"everything, created":                         {everything(), "pods", nil, nil, "CREATE", false},
		"everything, created with an owner":           {everything(), "pods", nil, []string{first}, "CREATE", false},
		"no deletion, created":                        {without("*"), "pods", nil, nil, "CREATE", false},
		"no deletion, created with an owner":          {without("*"), "pods", nil, []string{first}, "CREATE", false},
		"no deletion of pods, created":                {without("pods"), "pods", nil, nil, "CREATE", false},
		"no deletion of pods, created with an owner":  {without("pods"), "pods", nil, []string{first}, "CREATE", false},
		"no deletion of pods, another with an owner":  {without("pods"), "not-pods", nil, []string{first}, "CREATE", false},
		"everything, updated":                         {everything(), "pods", nil, nil, "UPDATE", false},
		"everything, the same owner":                  {everything(), "pods", []string{first}, []string{first}, "UPDATE", false},
		"everything, a new owner":                     {everything(), "pods", nil, []string{first}, "UPDATE", false},
		"no deletion, updated":                        {without("*"), "pods", nil, nil, "UPDATE", false},
		"no deletion, the same owner":                 {without("*"), "pods", []string{first}, []string{first}, "UPDATE", false},
		"no deletion, a new owner":                    {without("*"), "pods", nil, []string{first}, "UPDATE", true},
		"no deletion, a second owner":                 {without("*"), "pods", []string{first}, []string{first, second}, "UPDATE", true},
		"no deletion, no owner any more":              {without("*"), "pods", []string{first}, nil, "UPDATE", true},
		"no deletion, another owner":                  {without("*"), "pods", []string{first}, []string{second}, "UPDATE", true},
		"no deletion of pods, updated":                {without("pods"), "pods", nil, nil, "UPDATE", false},
		"no deletion of pods, a new owner":            {without("pods"), "pods", nil, []string{first}, "UPDATE", true},
		"no deletion of pods, their status":           {without("pods"), "pods/status", nil, []string{first}, "UPDATE", false},
		"no deletion of pods, a new owner of another": {without("pods"), "not-pods", nil, []string{first}, "UPDATE", false},
		"no deletion of pods, a new owner in a group": {without("pods"), "example.com/pods", nil, []string{first}, "UPDATE", true},
		"no deletion, the status of pods of a group":  {without("*"), "example.com/pods/status", nil, []string{first}, "UPDATE", true},
		"no deletion, a new owner of what is deleted": {without("*"), "pods", []string{first}, nil, "DELETE", false},
	} {
		t.Run(name, func(t *testing.T) {
			q := request{operation: row.operation, object: owned(row.now...), caller: row.who}
			q.resource, q.subresource, _ = strings.Cut(row.resource, "/status")
			if strings.Contains(row.resource, "/status") {
				q.subresource = "status"
			}
			if row.operation != "CREATE" {
				q.old = owned(row.old...)
			}
			want := "allowed"
			if row.denied {
				group, resource, _ := cutLast(q.resource)
				if group != "" {
					resource += "." + group
				}
				want = fmt.Sprintf(denied, resource)
			}
			configured(t, "OwnerReferencesPermissionEnforcement", "").validate(q).says(t, want)
		})
	}
	q := request{operation: "UPDATE", resource: "scales", old: "{spec: {}}", object: "{spec: {a: b}}", caller: without("*")}
	configured(t, "OwnerReferencesPermissionEnforcement", "").validate(q).says(t, "allowed")
	c := without("*")
	c.why = authorizationv1.SubjectAccessReviewStatus{Reason: "no role", EvaluationError: "a role is missing"}
	q = request{operation: "UPDATE", old: owned(), object: owned(first), caller: c}
	configured(t, "OwnerReferencesPermissionEnforcement", "").validate(q).says(t,
		`403 pods "web" is forbidden: cannot set an ownerRef on a resource you can't delete: no role, a role is missing`)
	c.wasAsked(t, "delete  v1 pods  shop web")
	c.fails = func(*authorizationv1.ResourceAttributes) bool { return true }
	configured(t, "OwnerReferencesPermissionEnforcement", "").validate(q).says(t, "error: it does not answer")
	c = everything()
	c.why.EvaluationError = "a role is missing"
	q.caller = c
	configured(t, "OwnerReferencesPermissionEnforcement", "").validate(q).says(t, "allowed") // an allow beside an error is one here
}

// ref is a reference to an owner. blocks is what blockOwnerDeletion is, "" for nothing.
func ref(kind, name, blocks string) string {
	version, kind, ok := strings.Cut(kind, " ")
	if !ok {
		version, kind = "v1", version
	}
	return fmt.Sprintf("{apiVersion: %s, kind: %s, name: %s, blockOwnerDeletion: %s}", version, kind, name, cmp.Or(blocks, "null"))
}

// The cases of kube-apiserver's own tests: who may keep an owner from being deleted.
func TestK18BlockOwnerDeletion(t *testing.T) {
	const denied = `403 pods "web" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>`
	var (
		blockRC1, notBlockRC1, nilBlockRC1    = ref("ReplicationController", "rc1", "true"), ref("ReplicationController", "rc1", "false"), ref("ReplicationController", "rc1", "")
		blockRC2, notBlockRC2, nilBlockRC2    = ref("ReplicationController", "rc2", "true"), ref("ReplicationController", "rc2", "false"), ref("ReplicationController", "rc2", "")
		blockDS1, notBlockDS1                 = ref("apps/v1 DaemonSet", "ds1", "true"), ref("apps/v1 DaemonSet", "ds1", "false")
		blockNode, notBlockNode, nilBlockNode = ref("Node", "node1", "true"), ref("Node", "node", "false"), ref("Node", "node", "")
	)
	const rc, node = "replicationcontrollers", "nodes"
	refs := func(list ...string) []string { return list }
	for name, row := range map[string]struct {
		who      *authorizer
		created  bool
		old, now []string
		denied   bool
	}{
		"everything, created":                          {everything(), true, nil, nil, false},
		"everything, none blocks":                      {everything(), true, nil, refs(notBlockRC1, notBlockRC2), false},
		"everything, some block":                       {everything(), true, nil, refs(blockRC1, blockRC2, blockNode), false},
		"no controllers, created":                      {without(rc), true, nil, nil, false},
		"no controllers, none blocks":                  {without(rc), true, nil, refs(notBlockRC1, nilBlockRC2), false},
		"no nodes, none blocks":                        {without(node), true, nil, refs(notBlockNode), false},
		"no controllers, some block":                   {without(rc), true, nil, refs(blockRC1, blockRC2), true},
		"no controllers, a daemon set is blocked":      {without(rc), true, nil, refs(blockDS1), false},
		"no nodes, a node is blocked":                  {without(node), true, nil, refs(blockNode), true},
		"everything, updated without a change":         {everything(), false, refs(nilBlockRC1, nilBlockNode), refs(notBlockRC1, notBlockNode), false},
		"everything, updated to block":                 {everything(), false, refs(notBlockRC1, notBlockNode), refs(blockRC1, blockNode), false},
		"everything, updated with blocking ones":       {everything(), false, nil, refs(blockRC1, blockNode), false},
		"no controllers, updated without a change":     {without(rc), false, refs(nilBlockRC1), refs(notBlockRC1), false},
		"no controllers, from false to true":           {without(rc), false, refs(notBlockRC1), refs(blockRC1), true},
		"no controllers, from nothing to true":         {without(rc), false, refs(nilBlockRC1), refs(blockRC1), true},
		"no nodes, from nothing to true":               {without(node), false, refs(nilBlockNode), refs(blockNode), true},
		"no controllers, from true to false":           {without(rc), false, refs(blockRC1), refs(notBlockRC1), false},
		"no nodes, from true to false":                 {without(node), false, refs(blockNode), refs(notBlockNode), false},
		"no controllers, a daemon set from false":      {without(rc), false, refs(notBlockDS1), refs(blockDS1), false},
		"no controllers, new ones that do not block":   {without(rc), false, nil, refs(notBlockRC1, nilBlockRC2), false},
		"no controllers, new ones that block":          {without(rc), false, nil, refs(blockRC1), true},
		"no controllers, a new daemon set":             {without(rc), false, nil, refs(blockDS1), false},
		"no nodes, a new one":                          {without(node), false, nil, refs(blockNode), true},
		"no controllers, what blocked, with another":   {without(rc), false, refs(uid(blockRC1, "a")), refs(uid(blockRC1, "a"), uid(nilBlockRC2, "b")), false},
		"no controllers, another that blocks by a uid": {without(rc), false, refs(uid(blockRC1, "a")), refs(uid(blockRC1, "a"), uid(blockRC2, "b")), true},
	} {
		t.Run(name, func(t *testing.T) {
			q := request{object: owned(row.now...), caller: row.who}
			if !row.created {
				q.operation, q.old = "UPDATE", owned(row.old...)
			}
			want := "allowed"
			if row.denied {
				want = denied
			}
			configured(t, "OwnerReferencesPermissionEnforcement", "").validate(q).says(t, want)
		})
	}
}

func uid(ref, is string) string { return strings.TrimSuffix(ref, "}") + ", uid: " + is + "}" }

// What the authorizer is asked about an owner depends on its kind, of which those of
// Kubernetes are known and others configured.
func TestK18KindsOfOwners(t *testing.T) {
	const any = "update * * * finalizers  *" //nolint:predeclared // it is about any object
	const unknown = `403 pods "web" is forbidden: cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion %s Kind %s: %s`
	const configuration = "{kinds: [{group: example.com, kind: Database, plural: databases, scope: Namespaced}, {group: example.com, kind: Zone, plural: zonen, scope: Cluster}]}"
	for owner, want := range map[string][2]string{
		"Pod":                                {"allowed", any + "; update  v1 pods finalizers shop o"},
		"Node":                               {"allowed", any + "; update  v1 nodes finalizers  o"},
		"Endpoints":                          {"allowed", any + "; update  v1 endpoints finalizers shop o"},
		"networking.k8s.io/v1 NetworkPolicy": {"allowed", any + "; update networking.k8s.io v1 networkpolicies finalizers shop o"},
		"networking.k8s.io/v1 IngressClass":  {"allowed", any + "; update networking.k8s.io v1 ingressclasses finalizers  o"},
		"batch/v1beta1 CronJob":              {"allowed", any + "; update batch v1beta1 cronjobs finalizers shop o"},
		"rbac.authorization.k8s.io/v1 ClusterRole": {"allowed", any + "; update rbac.authorization.k8s.io v1 clusterroles finalizers  o"},
		"example.com/v1 Database":                  {"allowed", any + "; update example.com v1 databases finalizers shop o"},
		"example.com/v2 Zone":                      {"allowed", any + "; update example.com v2 zonen finalizers  o"},
		"example.com/v1 Cache":                     {fmt.Sprintf(unknown, "example.com/v1", "Cache", `no matches for kind "Cache" in version "example.com/v1"`), any},
		"apps/v1 Pod":                              {fmt.Sprintf(unknown, "apps/v1", "Pod", `no matches for kind "Pod" in version "apps/v1"`), any},
		"a/b/c Pod":                                {fmt.Sprintf(unknown, "a/b/c", "Pod", "unexpected GroupVersion string: a/b/c"), any},
	} {
		c := without("nothing")
		q := request{object: owned(ref(owner, "o", "true")), caller: c}
		configured(t, "OwnerReferencesPermissionEnforcement", configuration).validate(q).says(t, want[0])
		c.wasAsked(t, want[1])
	}
	c := everything()
	c.fails = func(do *authorizationv1.ResourceAttributes) bool { return do.Resource == "*" }
	q := request{object: owned(ref("Pod", "o", "true")), caller: c}
	configured(t, "OwnerReferencesPermissionEnforcement", "").validate(q).says(t, "allowed")
	c.fails = func(do *authorizationv1.ResourceAttributes) bool { return true }
	configured(t, "OwnerReferencesPermissionEnforcement", "").validate(q).says(t, "error: it does not answer")

	var many []string
	for i := range 65 {
		many = append(many, uid(ref("Pod", "o", "true"), fmt.Sprintf("u%d", i)))
	}
	c = without("nothing")
	configured(t, "OwnerReferencesPermissionEnforcement", "").validate(request{object: owned(many...), caller: c}).says(t,
		`403 pods "web" is forbidden: cannot set blockOwnerDeletion for more than 64 owners at once`)
	c.wasAsked(t, any)
	configured(t, "OwnerReferencesPermissionEnforcement", "").validate(request{object: owned(many[1:]...), caller: c}).says(t, "allowed")

	_, problems := configure(t, "OwnerReferencesPermissionEnforcement", "{kinds: [{group: apps, kind: Deployment, plural: deployments, scope: Namespaced}, {scope: Everywhere}]}")
	const want = "kinds[0]: Duplicate value: \"Deployment.apps\"\nkinds[1].group: Required value\nkinds[1].kind: Required value\nkinds[1].plural: Required value\n" +
		"kinds[1].scope: Unsupported value: \"Everywhere\": supported values: \"Cluster\", \"Namespaced\""
	if problems != want {
		t.Errorf("it says\n%s\nwant\n%s", problems, want)
	}
}
