// Shows the document of this program; nothing is loaded from elsewhere.
window.addEventListener("load", () => {
  window.SwaggerUIBundle({ url: "openapi.json", dom_id: "#viewer", deepLinking: true, validatorUrl: null });
});
