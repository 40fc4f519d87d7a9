const seen = {};
function nameOf(context) {
    // Types are gone in the compiled file, so the lines differ.
    const unused = undefined;
    return context.request.params.name;
}
export default async function (context) {
    seen[nameOf(context)] = 1;
    return seen;
}
//# sourceMappingURL=data:application/json;base64,eyJ2ZXJzaW9uIjozLCJmaWxlIjoiY29tcGlsZWQuanMiLCJzb3VyY2VSb290IjoiIiwic291cmNlcyI6WyJjb21waWxlZC50cyJdLCJuYW1lcyI6W10sIm1hcHBpbmdzIjoiQUFPQSxNQUFNLElBQUksR0FBVSxFQUFFLENBQUM7QUFFdkIsU0FBUyxNQUFNLENBQUMsT0FBZ0I7SUFDOUIsNERBQTREO0lBQzVELE1BQU0sTUFBTSxHQUF1QixTQUFTLENBQUM7SUFDN0MsT0FBTyxPQUFPLENBQUMsT0FBTyxDQUFDLE1BQU8sQ0FBQyxJQUFJLENBQUM7QUFDdEMsQ0FBQztBQUVELE1BQU0sQ0FBQyxPQUFPLENBQUMsS0FBSyxXQUFXLE9BQWdCO0lBQzdDLElBQUksQ0FBQyxNQUFNLENBQUMsT0FBTyxDQUFDLENBQUMsR0FBRyxDQUFDLENBQUM7SUFDMUIsT0FBTyxJQUFJLENBQUM7QUFDZCxDQUFDIn0=